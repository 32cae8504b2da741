"""The curves as one picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]


def draw(lengths: Rows, sessions: Rows, recoveries: Rows, path: Path) -> None:
    """Draw costs against session length and against live sessions, and the time to recover."""
    figure = Figure(figsize=(15, 8), layout="constrained")
    axes = figure.subplots(2, 3)
    for column, (rows, x, what) in enumerate(
        ((lengths, "to_trace", "traces of each session"), (sessions, "sessions", "live sessions"))
    ):
        _curve(axes[0][column], rows, x, what, (("us_per_record", "µs of processor a record"),))
        _curve(
            axes[1][column],
            rows,
            x,
            what,
            (
                ("state_bytes_per_session", "state, bytes a session"),
                ("changelog_bytes_per_record", "changelog, bytes a record"),
            ),
        )
    _curve(axes[0][2], recoveries, "sessions", "sessions recovered", (("seconds", "seconds until ready"),))
    memory = [{**row, "mib": row["peak_bytes"] / 2**20} for row in recoveries]
    _curve(axes[1][2], memory, "sessions", "sessions recovered", (("mib", "peak memory, MiB"),))
    figure.savefig(path)


def _curve(axes: Axes, rows: Rows, x: str, what: str, curves: Sequence[tuple[str, str]]) -> None:
    for name, label in curves:
        axes.plot([row[x] for row in rows], [row[name] for row in rows], marker="o", label=label)
    axes.set_xscale("symlog")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(what)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
