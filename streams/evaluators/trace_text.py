"""A trace as a judge reads it: JSON without the empty fields, cut in a stated way where it is too long."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streams.evaluators.calls import decoded

_HELD_AS_TEXT: Final = ("input", "output", "metadata", "model_parameters")
_MAY_BE_LONG: Final = (*_HELD_AS_TEXT, "error")
_LENGTHS: Final = (16_000, 4_000, 1_000, 250)
"""Characters kept of a long field, tried in this order until the trace fits."""


@dataclass(frozen=True, slots=True)
class TraceText:
    """A trace as JSON text."""

    text: str
    characters: int
    """Of the whole trace's JSON; more than the text's where it was cut."""

    @property
    def cut(self) -> bool:
        """Whether something was left out."""
        return len(self.text) < self.characters


def trace_text(trace: Mapping[str, Any], limit: int) -> TraceText:
    """Return a trace as JSON of at most *limit* characters.

    Where it is longer, the middles of its longest fields are left out, shorter and shorter; then spans from the
    middle. What was left out is marked with how much it was.
    """
    whole = _readable(trace)
    spans = sorted((_readable(span) for span in trace["spans"]), key=_start)
    text = json_text({**whole, "spans": spans})
    characters = len(text)
    for length in _LENGTHS:
        if len(text) <= limit:
            return TraceText(text, characters)
        short, short_spans = _shortened(whole, length), [_shortened(span, length) for span in spans]
        text = json_text({**short, "spans": short_spans})
    kept = len(spans)
    while len(text) > limit and kept:
        kept //= 2
        text = json_text({**short, "spans": _ends(short_spans, kept)})
    if len(text) > limit:
        # Thousands of tags, say. As a string, because half a JSON text is none; quoting may double it.
        text = json_text(without_middle(text, limit // 2 - 100))
    return TraceText(text, characters)


def json_text(value: Any) -> str:
    """Return JSON in which no `<` stands, so that nothing in it can close the marks around it in a prompt."""
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
    return text.encode("utf-8", "replace").decode()  # JSON may name half a character; UTF-8 cannot


def _readable(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace's or a span's fields with what is held as JSON text decoded; without spans and empty fields."""
    fields = {name: decoded(value) if name in _HELD_AS_TEXT else value for name, value in held.items()}
    return {name: value for name, value in fields.items() if name != "spans" and value not in (None, "", {}, [])}


def _start(span: Mapping[str, Any]) -> float:
    started_at: float = span.get("started_at", float("inf"))
    return started_at


def _shortened(fields: Mapping[str, Any], length: int) -> dict[str, Any]:
    short = dict(fields)
    for name in _MAY_BE_LONG:
        if (value := fields.get(name)) is not None:
            text = value if isinstance(value, str) else json_text(value)
            short[name] = value if len(text) <= length else without_middle(text, length)
    return short


def without_middle(text: str, length: int) -> str:
    """Return the first and the last half of *length* characters, and how many stood between them."""
    first, last = length - length // 2, length // 2
    return f"{text[:first]}[... {len(text) - length} characters left out ...]{text[len(text) - last :]}"


def _ends(spans: list[dict[str, Any]], kept: int) -> list[Any]:
    first, last = kept - kept // 2, kept // 2
    return [*spans[:first], f"[... {len(spans) - kept} spans left out ...]", *spans[len(spans) - last :]]
