"""The table for people and the JSON file for programs."""

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.pipeline.contender import CONTENDERS, OURS, Contender
from benchmarks.pipeline.measure import Latency, Run

RESULTS = Path(__file__).parents[1] / "results"


@dataclass
class Measured:
    """What one broker gave."""

    broker: str
    runs: dict[str, list[Run]] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)
    latency: Latency | None = None

    def median(self, letter: str, of: Callable[[Run], float]) -> float | None:
        """Return the median over a contender's runs; none where it has none."""
        runs = self.runs.get(letter, [])
        return statistics.median(map(of, runs)) if runs else None

    def ratio(self, of: Callable[[Run], float], letter: str) -> float | None:
        """Return ours over another's, of medians."""
        ours, other = self.median(OURS.letter, of), self.median(letter, of)
        return ours / other if ours is not None and other else None


def wide_console() -> Console:
    """Return a console that does not break tables where the output is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 150)


def show(console: Console, measured: Measured) -> None:
    """Print a broker's table."""
    table = Table(title=f"{measured.broker}: medians of runs taken in turns")
    table.add_column("who")
    for name in (
        "records/s",
        "from",
        "to",
        "CPU s/100k",
        "broker CPU s/100k",
        "peak MiB",
        "e over it",
        "e over it, CPU",
        "through",
    ):
        table.add_column(name, justify="right")
    for contender in CONTENDERS:
        if contender.letter in measured.runs or contender.letter in measured.failures:
            table.add_row(*_row(measured, contender))
    console.print(table)
    if measured.latency:
        console.print(said(measured.latency))
    for letter, found in measured.failures.items():
        console.print(f"({letter}) failed {len(found)} times: {found[-1]}", style="yellow", markup=False)


def _row(measured: Measured, contender: Contender) -> Sequence[str]:
    letter, runs = contender.letter, measured.runs.get(contender.letter, [])
    rates = [run.rate for run in runs] or [0.0]
    is_ours = contender is OURS
    return (
        f"({letter}) {contender.name}",
        _number(measured.median(letter, lambda run: run.rate)),
        _number(min(rates)),
        _number(max(rates)),
        _number(measured.median(letter, lambda run: run.cpu_per_100k), 2),
        _number(measured.median(letter, lambda run: run.broker_cpu_per_100k), 2),
        _number(measured.median(letter, lambda run: run.peak_bytes / 2**20)),
        "" if is_ours else _times(measured.ratio(lambda run: run.rate, letter)),
        "" if is_ours else _times(measured.ratio(lambda run: run.cpu_per_100k, letter)),
        f"{sum(run.complete for run in runs)}/{len(runs)}",
    )


def said(found: Latency) -> str:
    """Say a latency in a line."""
    times = "broker's append times" if found.broker_times else "from the hand-over to the producer to the arrival"
    first = (
        "" if found.log_p99_ms is None else f"; into the log: p50 {found.log_p50_ms:.0f}, p99 {found.log_p99_ms:.0f} ms"
    )
    return (
        f"score to notice at {found.reached:,.0f} records/s: p50 {found.p50_ms:.0f} ms, p95 {found.p95_ms:.0f} ms, "
        f"p99 {found.p99_ms:.0f} ms, longest {found.max_ms:.0f} ms, of {found.notices:,} notices ({times}){first}"
    )


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} x"


def document(facts: Mapping[str, Any], plan: Mapping[str, Any], measured: Sequence[Measured]) -> dict[str, Any]:
    """Return everything as JSON has it."""
    return {"facts": facts, "plan": plan, "brokers": [_broker(item) for item in measured]}


def _broker(measured: Measured) -> dict[str, Any]:
    quantities: dict[str, Callable[[Run], float]] = {
        "records_per_s": lambda run: run.rate,
        "cpu_s_per_100k": lambda run: run.cpu_per_100k,
        "broker_cpu_s_per_100k": lambda run: run.broker_cpu_per_100k,
        "peak_bytes": lambda run: run.peak_bytes,
    }
    others = [letter for letter in measured.runs if letter != OURS.letter]
    return {
        "broker": measured.broker,
        "medians": {
            letter: {name: measured.median(letter, of) for name, of in quantities.items()} for letter in measured.runs
        },
        "ratios_of_ours": {
            letter: {name: measured.ratio(quantities[name], letter) for name in ("records_per_s", "cpu_s_per_100k")}
            for letter in others
        },
        "latency": asdict(measured.latency) if measured.latency else None,
        "runs": {
            letter: [{**asdict(run), "records_per_s": run.rate, "cpu_s_per_100k": run.cpu_per_100k} for run in runs]
            for letter, runs in measured.runs.items()
        },
        "failures": measured.failures,
    }


def write(found: Mapping[str, Any], name: str) -> Path:
    """Write results under benchmarks/results; returns where."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return path
