"""A chosen setting as a settings file, with the evidence for it as comments."""

import json
from dataclasses import fields
from typing import Any, Final

from streams.core.gate import Gate
from streams.core.rules import Rules

WIDTH: Final = 110


def settings_file(rules: Rules, gate: Gate, comments: list[str]) -> str:
    """Return TOML that holds *gate* and every other setting of *rules* that is not the default, ready for --config."""
    default = Rules()
    values: dict[str, Any] = {
        "gate_window": gate.window,
        "gate_target": gate.target,
        "gate_gain": gate.gain,
        "gate_drop": gate.drop,
    }
    others = {
        item.name: getattr(rules, item.name)
        for item in fields(Rules)
        if item.name not in {*values, "pace"} and getattr(rules, item.name) != getattr(default, item.name)
    }
    lines = [f"# {line}".rstrip() for comment in comments for line in wrapped(comment)]
    lines += ["", *(f"{name} = {_value(value)}" for name, value in values.items())]
    if others:
        lines += ["", "# As they were in the sessions that this was learned from:"]
        lines += [f"{name} = {_value(value)}" for name, value in others.items()]
    if rules.pace:
        lines += ["", '# Pace was on. Its lines are in a file of their own, to be named here: pace_file = "..."']
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(held)}" for name, held in value.items()) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(_value(held) for held in value) + "]"
    # A JSON string, number or boolean is one in TOML too.
    return json.dumps(value)


def wrapped(comment: str) -> list[str]:
    """Break a comment between words; its own line ends stay."""
    found: list[str] = []
    for line in comment.splitlines() or [""]:
        current = ""
        for word in line.split(" "):
            if current and len(current) + 1 + len(word) > WIDTH:
                found.append(current)
                current = word
            else:
                current = f"{current} {word}" if current else word
        found.append(current)
    return found
