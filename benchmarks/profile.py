"""Where the worker's time goes: it consumes a backlog while py-spy looks at who holds the interpreter.

python -m benchmarks.profile [--broker kafka|embedded] [--records 300000] [--seconds 20] [--name profile]

Shares are of the samples in which Python code ran: a process can use one processor for that, whatever the machine has,
so they say what a faster worker would have to do less of. Prints a table and writes JSON beside the other results.
"""

import argparse
import asyncio
import logging
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from faust.types import TP
from rich.console import Console
from rich.table import Table

from benchmarks.pipeline.contender import OURS
from benchmarks.pipeline.machine import facts
from benchmarks.pipeline.records import Workload
from benchmarks.pipeline.report import wide_console, write
from benchmarks.pipeline.scene import Failed, Scene, running
from benchmarks.stacks import parts
from streams.broker import apache_kafka, embedded

BACKLOG_RATE = 20_000.0
PARTITIONS = 8
REACH_S = 120.0


async def _measure(broker: Any, directory: Path, options: argparse.Namespace) -> Counter[str]:
    scene = Scene(broker, Workload(records=options.records), PARTITIONS, directory)
    raw = directory / "stacks"
    try:
        await scene.load(BACKLOG_RATE)
        started = await OURS.prepare(broker, "profiled", PARTITIONS, directory)
        with running(started, directory / "log") as process:
            outputs = [TP(started.outputs, number) for number in range(PARTITIONS)]
            await scene.reach(outputs, options.records // started.per_output // 10, REACH_S)
            await asyncio.to_thread(_record, process.pid, options.seconds, raw)
            found = await scene.count(outputs)
        if found >= options.records // started.per_output:
            raise Failed("the backlog was consumed before the time was over: take more --records or fewer --seconds")
    finally:
        await scene.stop()
    return parts(raw.read_text("utf-8").splitlines())


def _record(pid: int, seconds: int, raw: Path) -> None:
    spy = Path(sys.executable).with_name("py-spy")
    where = ("--pid", str(pid), "--duration", str(seconds), "--gil", "--rate", "200")
    command = (spy, "record", *where, "--format", "raw", "--output", raw)
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own tool and numbers)


def _show(console: Console, found: Counter[str]) -> None:
    table = Table("part", "share")
    for name, count in found.most_common():
        table.add_row(name, f"{count / found.total():.1%}")
    console.print(table)


def main() -> None:
    """Measure, print, write."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", choices=("kafka", "embedded"), default="kafka")
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--name", default="profile", help="first part of the name of the file of results")
    options = parser.parse_args()
    console, before = wide_console(), facts()
    with tempfile.TemporaryDirectory(prefix="tgate-profile-") as name:
        directory = Path(name)
        started = apache_kafka(directory / "kafka") if options.broker == "kafka" else embedded()
        with started as broker:
            found = asyncio.run(_measure(broker, directory, options))
            broker_name = broker.name
    _show(console, found)
    shares = {name: round(count / found.total(), 4) for name, count in found.most_common()}
    document = {"machine": before, "broker": broker_name, "samples": found.total(), "shares": shares}
    path = write(document, f"{options.name}-{before['commit']}")
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
