"""How cost grows: with workers, with the length of a session, with sessions that are alive; and how long recovery takes.

    python -m benchmarks.scaling
    python -m benchmarks.scaling --longest 1000 --most 10000 --records 30000

Cost by length and by live sessions is that of the session stage alone, in processor time and without a broker;
workers and recovery are measured with whole workers on Apache Kafka. Prints tables, writes JSON and a picture.
"""

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.pipeline.machine import ROOT, facts
from benchmarks.pipeline.records import Workload
from benchmarks.pipeline.report import RESULTS, wide_console, write
from benchmarks.pipeline.scene import Scene
from benchmarks.scaling.lengths import by_length
from benchmarks.scaling.plot import draw
from benchmarks.scaling.recovery import recovery
from benchmarks.scaling.workers import by_workers
from streams.broker import apache_kafka

COLUMNS = {
    "from_trace": "from trace",
    "to_trace": "to trace",
    "sessions": "sessions",
    "workers": "workers",
    "measured": "measured",
    "records_per_s": "records/s",
    "us_per_record": "us a record",
    "cpu_s_per_100k": "CPU s/100k",
    "broker_cpu_s_per_100k": "broker CPU s/100k",
    "state_bytes_per_session": "state bytes a session",
    "memory_bytes_per_session": "memory bytes a session",
    "changelog_bytes_per_record": "changelog bytes a record",
    "restore_cpu_s": "restore CPU s",
    "seconds": "seconds until ready",
    "peak_bytes": "peak memory bytes",
}
"""What the tables show of what is measured; the file has all of it."""
SESSIONS = (1_000, 10_000, 100_000, 1_000_000)
PARTITIONS = 8


def main() -> None:
    """Measure, print, draw, write."""
    options = _options()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    console, about = wide_console(), facts()
    counts = [count for count in SESSIONS if count <= options.most]
    lengths = asyncio.run(by_length(options.longest))
    _show(console, "cost by length of a session", lengths)
    sessions = [_in_a_process(count) for count in counts]
    _show(console, "cost by live sessions", sessions)
    with tempfile.TemporaryDirectory(prefix="tgate-scaling-") as directory:
        found = _on_kafka(Path(directory), options, [0, *counts])
    for what, rows in found.items():
        _show(console, what, rows)
    name = f"scaling-{about['commit']}"
    path = write({"facts": about, "plan": vars(options), "lengths": lengths, "sessions": sessions, **found}, name)
    picture = RESULTS / f"{name}.svg"
    draw(lengths, sessions, found["recovery"], picture)
    console.print(f"written to {path} and {picture}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--longest", type=int, default=10_000, help="traces of the longest session")
    parser.add_argument("--most", type=int, default=SESSIONS[-1], help="live sessions")
    parser.add_argument("--records", type=int, default=300_000, help="of the backlog that one and two workers consume")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one run after its first record")
    return parser.parse_args()


def _in_a_process(sessions: int) -> dict[str, Any]:
    """Measure in a process of its own, whose memory holds nothing else."""
    command = [sys.executable, "-m", "benchmarks.scaling.sessions", str(sessions)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout  # noqa: S603
    found: dict[str, Any] = json.loads(said)
    return found


def _on_kafka(directory: Path, options: argparse.Namespace, counts: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    async def measure() -> dict[str, list[dict[str, Any]]]:
        scene = Scene(broker, Workload(records=options.records), PARTITIONS, directory)
        try:
            recoveries = [await recovery(scene, count) for count in counts]
            await scene.load(backlog_rate=20_000)
            return {"recovery": recoveries, "workers": await by_workers(scene, options.limit)}
        finally:
            await scene.stop()

    with apache_kafka(directory / "kafka") as broker:
        return asyncio.run(measure())


def _show(console: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=title)
    names = [name for name in COLUMNS if name in rows[0]]
    for name in names:
        table.add_column(COLUMNS[name], justify="right")
    for row in rows:
        table.add_row(*(_shown(row.get(name)) for name in names))
    console.print(table)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if value < 1_000 else f"{value:,.0f}"
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


if __name__ == "__main__":
    main()
