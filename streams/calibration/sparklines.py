"""Single sessions as small pictures: score, peak, the window that runs, and where the gate fired."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from streams.calibration.calibration import CURRENT, GateFinding
from streams.calibration.pictures import FAILED, GOOD, IN_FORCE, UNKNOWN, Picture, drawn
from streams.core.gate import Gate
from streams.core.model import Condition

COLUMNS: Final = 4
EACH: Final = 4
MARKS: Final = {Condition.STALL: ("v", "#e6a23c"), Condition.REGRESSION: ("X", "#8e2de2")}


@dataclass(frozen=True)
class Group:
    """Some sessions that show the same thing."""

    title: str
    colour: str
    sessions: tuple[int, ...]


def groups(gate: GateFinding, number: int) -> list[Group]:
    """Return the best and the worst sessions of a setting; without labels the loudest and some silent ones."""
    found = gate.evidence
    lengths, first, share = found.lengths, found.sweep.first[number], found.left[number]
    flagged = found.flagged[number]

    def pick(wanted: Any, key: Any) -> tuple[int, ...]:
        some = np.flatnonzero(wanted)
        return tuple(int(at) for at in some[np.argsort(key[some], kind="stable")][:EACH])

    if not found.labeled:
        return [
            Group("most notices", UNKNOWN, pick(flagged, -found.sweep.notices[number])),
            Group("longest without a notice", UNKNOWN, pick(~flagged, -lengths)),
        ]
    return [
        Group("failed, found earliest", FAILED, pick(found.failed & flagged, -share)),
        Group("failed, found latest", FAILED, pick(found.failed & flagged, share)),
        Group("failed, missed", FAILED, pick(found.failed & ~flagged, -lengths)),
        Group("good, false alarm", GOOD, pick(found.good & flagged, first)),
    ]


def sparklines(gate: GateFinding) -> list[Picture]:
    """Return the sessions worth a look, under the chosen setting where there is one, else under that in force."""
    number = gate.chosen.setting if gate.chosen and gate.chosen.setting is not None else CURRENT
    pictures = []
    for metric in range(len(gate.tracks.metrics)):
        shown = [group for group in groups(gate, number) if group.sessions]
        if shown:
            pictures.append(_picture(gate, number, metric, shown))
    return pictures


def _picture(gate: GateFinding, number: int, metric: int, shown: list[Group]) -> Picture:
    def draw(figure: Figure) -> None:
        grid: Any = figure.subplots(len(shown), COLUMNS, sharey=True, squeeze=False)
        for row, group in zip(grid, shown, strict=True):
            for axes in row[len(group.sessions) :]:
                axes.set_axis_off()
            for axes, session in zip(row, group.sessions, strict=False):
                _draw_session(axes, gate, gate.gates[number], metric, session, group)
            row[0].set_ylabel("score (0 to 1)")
        for axes in grid[-1]:
            axes.set_xlabel("trace number")
        for row in grid[:-1]:
            for axes in row[len(shown[-1].sessions) :]:
                axes.set_xlabel("trace number")

    name = gate.tracks.metrics[metric]
    caption = (
        f"{name}, session by session: score (line), peak (grey steps), traces since a gain (shaded while a stall can "
        "come), stall (triangle), regression (cross), target (dotted)."
    )
    return Picture(f"sessions-{name}", caption, drawn(draw, 11, 2.0 * len(shown)))


def _draw_session(axes: Any, gate: GateFinding, setting: Gate, metric: int, session: int, group: Group) -> None:
    values = gate.tracks.of(session, metric)
    state = setting.start()
    peaks: list[float] = []
    waiting: list[bool] = []
    for trace, value in enumerate(values, 1):
        state, fired = setting.step(state, float(value))
        peaks.append(state.peak)
        waiting.append(state.traces_since_gain > 0 and state.peak < setting.target)
        for condition in fired:
            marker, colour = MARKS[condition]
            axes.plot(trace, value, marker, color=colour, markersize=7, markeredgecolor="white", zorder=4)
    traces = np.arange(1, len(values) + 1)
    axes.step(traces, peaks, where="post", color="#9aa3af", linewidth=1)
    axes.fill_between(traces, 0, 1, where=waiting, step="mid", color="#faf3e3", linewidth=0)
    axes.plot(traces, values, color=group.colour, linewidth=1.4, marker="." if len(values) < 60 else None, markersize=4)
    if setting.target > 0:
        axes.axhline(setting.target, color=IN_FORCE, linestyle=":", linewidth=0.8)
    axes.set(ylim=(-0.05, 1.08), xlim=(0.5, max(2, len(values)) + 0.5))
    axes.set_title(f"{group.title}\n{gate.tracks.names[session][:28]}", fontsize=8)
