"""A running worker's health, as a probe and Prometheus see it."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def log_lines(log: Path) -> Iterator[dict[str, Any]]:
    """Yield what a worker with log_format=json has logged so far, leaving out lines that are no JSON."""
    for line in log.read_text().splitlines():
        if line.startswith("{") and line.endswith("}"):
            yield json.loads(line)


def url_of(log: Path) -> str | None:
    """Return where the worker with this log answers, once it has said so."""
    return next((line["url"] for line in log_lines(log) if line["event"] == "health"), None)


def get(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def get_json(url: str) -> tuple[int, Any]:
    status, body = get(url)
    return status, json.loads(body)


def series(url: str) -> Series:
    """Return every sample as (name, sorted labels) -> value."""
    status, body = get(url)
    assert status == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def by_label(found: Series, name: str, label: str) -> dict[str, float]:
    """Return a metric's values above 0 by one label, summed over the others."""
    values: dict[str, float] = {}
    for (sample, labels), value in found.items():
        if sample == name and value:
            key = dict(labels)[label]
            values[key] = values.get(key, 0) + value
    return values
