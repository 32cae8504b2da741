"""The alert rules and the dashboard, and which of their metrics and labels no worker exposes."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from tests.health.probe import Series

INFRA = Path(__file__).parents[2] / "infra"
OF_PROMETHEUS = {"up": {"job", "instance"}}
ADDED_BY_SCRAPING = {"job", "instance"}

_SELECTOR = re.compile(r"\b((?:tgate|process)_[a-z_]+|up\b)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((INFRA / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return list(json.loads((INFRA / "dashboard.json").read_text())["panels"])


def expressions() -> list[str]:
    """Return every PromQL expression of the alert rules and the dashboard, and what a dashboard variable asks for."""
    templating = json.loads((INFRA / "dashboard.json").read_text())["templating"]["list"]
    asked = [item["query"]["query"] for item in templating if item["type"] == "query"]
    return [
        *(rule["expr"] for rule in rules()),
        *(target["expr"] for panel in panels() for target in panel.get("targets", [])),
        *(re.sub(r"label_values\((\w+), (\w+)\)", r"count by (\2) (\1)", query) for query in asked),
    ]


def metrics_in(expression: str) -> dict[str, set[str]]:
    """Return the metrics of an expression, each with the labels that it is asked for or grouped by."""
    grouped = {label.strip() for found in _GROUPING.findall(expression) for label in found.split(",")} - {""}
    found: dict[str, set[str]] = defaultdict(set)
    for name, matchers in _SELECTOR.findall(_GROUPING.sub(" ", expression)):
        found[name] |= grouped | set(_MATCHER.findall(matchers))
    return found


def unknown(exposed: Series) -> list[str]:
    """Return what the alert rules and the dashboard name and a worker with these series does not have."""
    known: dict[str, set[str]] = defaultdict(set, OF_PROMETHEUS)
    for name, labels in exposed:
        known[name] |= {label for label, _ in labels} | ADDED_BY_SCRAPING
    missing = []
    for expression in expressions():
        for name, labels in metrics_in(expression).items():
            if name not in known:
                missing.append(f"{name} in {expression}")
            elif not labels <= known[name]:
                missing.append(f"{name}{sorted(labels - known[name])} in {expression}")
    return missing
