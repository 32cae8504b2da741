"""How monitors are shown."""

from collections.abc import Iterable, Mapping
from typing import Final

from rich.text import Text

from streams.cli.output import clean, clock, say, say_bytes, table
from streams.cli.output import show as show_table
from streams.cli.runs_show import what_of
from streams.core.monitors import Monitor, MonitorStatus
from streams.wire import Format, Wire

STYLES: Final[Mapping[str, str]] = {MonitorStatus.ACTIVE: "green", MonitorStatus.PAUSED: "yellow"}


def print_json(monitor: Monitor) -> None:
    """Print a monitor as its record has it."""
    say_bytes(Wire().write(monitor, Format.JSON))


def next_run(monitor: Monitor) -> str:
    """Say when a monitor runs next."""
    if monitor.next_run_at is None:
        return "paused: it runs when it is triggered"
    return f"{monitor.cadence}, next at {clock(monitor.next_run_at)}"


def show_list(monitors: Iterable[Monitor]) -> None:
    """Print monitors as a table."""
    made = table("monitor", "name", "status", "cadence", "last run", "next run", "of", "metrics")
    for monitor in monitors:
        made.add_row(
            clean(monitor.monitor_id[:8], "bold"),
            clean(monitor.name, limit=60),
            Text(monitor.status, STYLES[monitor.status]),
            clean(monitor.cadence),
            "never" if monitor.last_run_at is None else clock(monitor.last_run_at),
            "-" if monitor.next_run_at is None else clock(monitor.next_run_at),
            clean(f"{monitor.project} {monitor.target.lower()}s"),
            clean(", ".join(monitor.metrics)),
        )
    show_table(made)


def show(monitor: Monitor) -> None:
    """Print all that is known of a monitor."""
    say(
        Text(monitor.status, STYLES[monitor.status]), "  ", clean(monitor.monitor_id, "bold"), "  ", clean(monitor.name)
    )
    _line("metrics", ", ".join(monitor.metrics))
    _line("of", what_of(monitor.project, monitor.target, monitor.filters, monitor.sampling_rate))
    _line("runs", next_run(monitor))
    _line("", "only when something of the project was ingested since" if monitor.only_if_changed else "always")
    if monitor.last_run_at is not None:
        _line("last run", f"{clock(monitor.last_run_at)}, {monitor.last_run_id}")
    for name, values in (("thresholds", monitor.thresholds), ("weights", monitor.signal_weights)):
        if values:
            _line(name, ", ".join(f"{key} {value:g}" for key, value in values.items()))
    if monitor.model:
        _line("model", monitor.model)
    if monitor.consecutive_failures:
        _line(
            "broken", f"{monitor.consecutive_failures} runs in a row; `tgate journal --kind run_failed` says why", "red"
        )


def _line(name: str, text: str, style: str = "") -> None:
    say((f"  {name:<11}", "dim"), clean(text, style))
