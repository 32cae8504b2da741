"""Pace lines as a picture: the lines over the sessions they were learned from, and how many stand behind them."""

from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from streams.calibration.calibration import GateFinding, PaceFinding
from streams.calibration.lines import Series
from streams.calibration.pictures import CHOSEN, FAILED, GOOD, UNKNOWN, Picture, drawn
from streams.core.pace import Pace

SHOWN_SESSIONS: Final = 150
"""Of a kind; more would only blacken the picture."""
TASK_COLOURS: Final = (CHOSEN, "#e6a23c", "#8e2de2", "#1b9aaa", "#c0504d", "#7f9c3b")


def pace_pictures(found: PaceFinding, gate: GateFinding) -> list[Picture]:
    """Return one picture for each metric that has lines."""
    metrics = list(dict.fromkeys(pace.metric for pace in found.paces))
    return [
        _picture(found, gate, metric, [pace for pace in found.paces if pace.metric == metric]) for metric in metrics
    ]


def _picture(found: PaceFinding, gate: GateFinding, metric: str, paces: list[Pace]) -> Picture:
    series = Series.of(gate.tracks, gate.tracks.metrics.index(metric))

    def draw(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        _draw_sessions(above, found, series)
        for at, pace in enumerate(paces):
            _draw_line(above, below, pace, TASK_COLOURS[at % len(TASK_COLOURS)])
        longest = int((~np.isnan(series.peaks)).any(axis=1).sum())
        until = max(pace.until for pace in paces)
        for axes in (above, below):
            axes.axvspan(until + 0.5, max(longest, until) + 1, color="#f0f1f3", zorder=0, linewidth=0)
        above.set(ylabel="highest score so far (0 to 1)", ylim=(-0.03, 1.04), xlim=(0.5, max(2, longest) + 0.5))
        legend = above.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for handle in legend.legend_handles:
            handle.set_alpha(1)
        most = max(point.sessions for pace in paces for point in pace.points)
        below.set(xlabel="trace number", ylabel="sessions behind", ylim=(0, 1.15 * max(1, most)))

    who = "all of them" if found.evidence.strict else "the good ones"
    caption = (
        f"{metric}: how far sessions had come by each trace (thin lines), the pace line learned from {who} (bold), and "
        "how many stand behind it. Where it is grey, or has no line, pace says nothing."
    )
    return Picture(f"pace-{metric}", caption, drawn(draw, 10, 4.4))


def _draw_sessions(axes: Any, found: PaceFinding, series: Series) -> None:
    evidence = found.evidence
    kinds: list[tuple[str, str, Any]] = [("session", UNKNOWN, evidence.good)]
    if not evidence.strict:
        kinds = [("good session", GOOD, evidence.good), ("failed session", FAILED, evidence.failed)]
    numbers = np.arange(1, len(series.peaks) + 1)
    for name, colour, some in kinds:
        for at, session in enumerate(np.flatnonzero(some)[:SHOWN_SESSIONS]):
            label = name if at == 0 else None
            axes.plot(numbers, series.peaks[:, session], color=colour, alpha=0.22, linewidth=0.8, label=label)


def _draw_line(above: Any, below: Any, pace: Pace, colour: str) -> None:
    ends = [point.trace for point in pace.points[1:]] + [pace.until + 1]
    edges = [pace.points[0].trace - 0.5, *(end - 0.5 for end in ends)]
    name = f"{pace.task or 'pace line'}, quantile {pace.quantile:g}"
    above.stairs([point.line for point in pace.points], edges, baseline=None, color=colour, linewidth=2.2, label=name)
    below.stairs([point.sessions for point in pace.points], edges, baseline=None, color=colour, linewidth=1.4)
