"""Writes the reference pages from the code: settings, topics, records and metrics; `--check` fails when one has gone stale."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from streams.metrics import Metrics
from streams.topics import BY_ROLE
from streams.wire import schemas

HERE = Path(__file__).parent
NOTE = "<!-- Made by docs/generate.py from the code: `make docs` writes it anew. -->\n\n"


def settings_page() -> str:
    """Return the settings table, as `tgate settings --markdown` prints it."""
    table = subprocess.run(
        [sys.executable, "-m", "streams", "settings", "--markdown"], check=True, capture_output=True, text=True, env={}
    ).stdout
    head = "# Settings\n\nEach is a key of the TOML file, and a variable `TGATE_` plus its name in capitals; times are in seconds.\n\n"
    return NOTE + head + table


def topics_page() -> str:
    """Return every topic with its key, record and cleanup."""
    rows = [
        f"| `{topic.name}` | {topic.key} | {_links(topic.schema)} | {topic.cleanup} | `{topic.partitions}` | {topic.purpose} |"
        for topic in BY_ROLE.values()
    ]
    head = "# Topics\n\nNames are defaults: the setting `topic_names` gives others. Keys are UTF-8.\n\n"
    table = "| topic | key | record | cleanup | partitions | holds |\n|---|---|---|---|---|---|\n"
    return NOTE + head + table + "\n".join(rows) + "\n"


def records_page() -> str:
    """Return every record of the wire with its fields."""
    parts = ["# Records\n\nFrom `schemas/`, the only definition of the wire. JSON has the same fields.\n"]
    for name in schemas.names():
        definition = _raw(name)
        parts.append(f"\n## {name}\n\n{definition.get('doc', '')}\n")
        if definition["type"] == "enum":
            parts.append("\nOne of " + ", ".join(f"`{symbol}`" for symbol in definition["symbols"]) + ".\n")
            continue
        parts.append("\n| field | type | meaning |\n|---|---|---|\n")
        parts += [
            f"| `{field['name']}` | {_type(field['type'])} | {field.get('doc', '')} |\n"
            for field in definition["fields"]
        ]
    return NOTE + "".join(parts)


def metrics_page() -> str:
    """Return every metric with its labels and its meaning."""
    metrics = Metrics()
    groups = (metrics.stages, metrics.outputs, metrics.partitions, metrics.worker)
    rows = []
    for metric in (metric for group in groups for metric in vars(group).values()):
        (family,) = metric.describe()
        name = family.name + "_total" * (family.type == "counter")
        labels = ", ".join(f"`{label}`" for label in metric._labelnames)  # noqa: SLF001  (it has no public name)
        rows.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n")
    head = (
        "# Metrics\n\nWhere a worker has a `health_port`, it answers `/metrics` for Prometheus; beside these there are "
        "the usual `process_*`. Rules to alert by are in `infra/alerts.yaml`, a Grafana dashboard in "
        "`infra/dashboard.json`.\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
    )
    return NOTE + head + "".join(rows)


def _raw(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((schemas.directory() / f"{name}.avsc").read_text("utf-8"))
    return found


def _type(definition: Any) -> str:
    if isinstance(definition, list):
        return " or ".join(_type(branch) for branch in definition)
    if isinstance(definition, dict):
        inner = definition.get("items") or definition.get("values")
        return f"{definition['type']} of {_type(inner)}" if inner else str(definition["type"])
    name = str(definition).removeprefix(f"{schemas.NAMESPACE}.")
    return name if name in schemas.PRIMITIVES else f"[{name}](#{name.lower()})"


def _links(records: str | None) -> str:
    if records is None:
        return "as it came"
    return ", ".join(f"[{name}](records.md#{name.lower()})" for name in records.split(", "))


def main() -> int:
    """Write the pages, or only compare them."""
    pages = {
        "settings.md": settings_page(),
        "topics.md": topics_page(),
        "records.md": records_page(),
        "metrics.md": metrics_page(),
    }
    if "--check" in sys.argv:
        stale = [name for name, text in pages.items() if (HERE / name).read_text("utf-8") != text]
        if stale:
            print(f"stale: {', '.join(stale)}; run make docs", file=sys.stderr)
        return 1 if stale else 0
    for name, text in pages.items():
        (HERE / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
