"""The report's pictures: how scores lie, what thresholds and settings trade, how early the first notice comes."""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streams.calibration.calibration import CURRENT, Calibration, GateFinding, PaceFinding, RuleFinding
from streams.calibration.evidence import Evidence
from streams.calibration.values import BUCKETS, MetricValues, histogram

GOOD, FAILED, UNKNOWN = "#3b7dd8", "#d1495b", "#8a8f98"
IN_FORCE, CHOSEN = "#222222", "#0b8a6b"
RULE_COLOURS: Final = {
    "trend": "#b07aa1",
    "relative": "#e6a23c",
    "breach": "#c0504d",
    "percentile": "#7f9c3b",
    "deadline": "#555555",
}
PACE_COLOUR: Final = "#d6249f"
TICKS: Final = (2, 3, 5, 10, 20, 50, 100, 200, 300)
STYLE: Final[dict[Any, Any]] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e8eb",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "tgate",
    # A session may be named anything, and a dollar sign starts a formula.
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Picture:
    """A figure with the name of its file and what it shows, in a sentence."""

    name: str
    caption: str
    figure: Figure

    @property
    def file_name(self) -> str:
        """The name, fit for a file whatever the metric is called."""
        return re.sub(r"[^A-Za-z0-9._-]", "_", self.name)

    def svg(self) -> str:
        """Return the picture as an SVG element, the same for the same data."""
        buffer = io.StringIO()
        with rc_context(STYLE):
            self.figure.savefig(buffer, format="svg", metadata={"Date": None}, dpi=150)
        return buffer.getvalue()[buffer.getvalue().index("<svg") :]

    def png(self) -> bytes:
        """Return the picture as a PNG file."""
        buffer = io.BytesIO()
        with rc_context(STYLE):
            self.figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
        return buffer.getvalue()


def drawn(draw: Callable[[Figure], None], width: float = 8.6, height: float = 3.0) -> Figure:
    """Return a figure in the report's style; sizes in inches."""
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
    return figure


def metric_pictures(found: Calibration) -> Iterable[Picture]:
    """Return one picture a metric: its histogram by label, and with labels the sweep over thresholds."""
    for item in found.values:
        held = found.by_metric[item.metric]

        def draw(figure: Figure, item: MetricValues = item, held: Mapping[str, float] = held) -> None:
            axes: Any = figure.subplots(1, 3 if item.labeled else 1, squeeze=False)[0]
            _draw_histogram(axes[0], item, held, found.labels)
            if item.labeled:
                _draw_sweep(axes[1], item)
                _draw_precision_recall(axes[2], item)

        caption = f"{item.metric}: the {found.one_value} value of each session"
        yield Picture(f"metric-{item.metric}", caption, drawn(draw, 11 if item.labeled else 5))


def _draw_histogram(
    axes: Axes, item: MetricValues, held: Mapping[str, float], labels: Mapping[str, bool] | None
) -> None:
    edges = np.arange(BUCKETS) / BUCKETS
    groups: list[tuple[str, str, list[float]]] = [
        ("good", GOOD, [value for name, value in held.items() if labels and labels.get(name) is False]),
        ("failed", FAILED, [value for name, value in held.items() if labels and labels.get(name) is True]),
        ("no label", UNKNOWN, [value for name, value in held.items() if not labels or name not in labels]),
    ]
    below = np.zeros(BUCKETS)
    for name, colour, some in groups:
        if some:
            counts = np.array(histogram(some))
            axes.bar(edges, counts, 1 / BUCKETS * 0.92, bottom=below, align="edge", color=colour, label=name)
            below += counts
    axes.axvline(item.threshold, color=IN_FORCE, linestyle="--", linewidth=1, label=f"threshold {item.threshold:g}")
    axes.set(title=item.metric, xlabel="score (0 to 1)", ylabel="sessions", xlim=(0, 1), ylim=(0, below.max() * 1.3))
    axes.legend(fontsize=8, ncols=2, loc="upper left")


def _draw_sweep(axes: Axes, item: MetricValues) -> None:
    lines = [at.threshold for at in item.sweep]
    said = [at.confusion for at in item.sweep if at.confusion is not None]
    axes.plot(lines, [at.precision for at in said], color=GOOD, label="precision")
    axes.plot(lines, [at.recall for at in said], color=FAILED, label="recall")
    axes.plot(lines, [at.f1 for at in said], color=CHOSEN, label="F1", linewidth=2)
    axes.axvline(item.threshold, color=IN_FORCE, linestyle="--", linewidth=1)
    axes.set(title="by threshold", xlabel="threshold (score)", ylabel="share (0 to 1)", xlim=(0, 1), ylim=(0, 1.03))
    axes.legend(fontsize=8, loc="lower right")


def _draw_precision_recall(axes: Axes, item: MetricValues) -> None:
    said = [(at.threshold, at.confusion) for at in item.sweep if at.confusion is not None and at.breach_count]
    axes.plot([at.recall for _, at in said], [at.precision for _, at in said], color=UNKNOWN, marker=".", zorder=2)
    assert item.labeled is not None
    now = item.labeled.configured
    axes.plot(now.recall, now.precision, "o", color=IN_FORCE, label=f"threshold {item.threshold:g}", zorder=3)
    best = next(at for line, at in said if line == item.labeled.best_f1_threshold) if said else now
    axes.plot(
        best.recall, best.precision, "D", color=CHOSEN, label=f"best F1, {item.labeled.best_f1_threshold:g}", zorder=3
    )
    axes.set(
        title="precision against recall",
        xlabel="recall (share of failed sessions)",
        ylabel="precision (share of breaches)",
        xlim=(-0.03, 1.03),
        ylim=(0, 1.05),
    )
    axes.legend(fontsize=8, loc="lower left")


def trade_off(gate: GateFinding, others: Iterable[RuleFinding], pace: PaceFinding | None = None) -> Picture:
    """Return false alarms against recall, of every setting of the gate and of the rules beside it."""

    def draw(figure: Figure) -> None:
        axes: Any = figure.subplots()
        _draw_settings(figure, axes, gate)
        for other in others:
            _draw_rules(axes, other)
        if pace is not None:
            every = range(len(pace.settings))
            _draw_best(axes, pace.evidence, every, PACE_COLOUR, "pace (cross-validated lines)", 1.6)
        for number, name, colour, marker in _marked(gate):
            at = 1000 * gate.evidence.false_rate[number], gate.evidence.recall[number]
            axes.plot(*at, marker, color=colour, markersize=10, markeredgecolor="white", label=name, zorder=5)
        if gate.chosen is not None:
            budget = 1000 * gate.chosen.budget
            axes.axvline(budget, color=CHOSEN, linestyle=":", label=f"budget {budget:g}")
        # Most settings worth a look lie near zero; a logarithm would hide those at zero.
        axes.set_xscale("symlog", linthresh=10)
        axes.set(xlabel="false alarms per 1,000 traces of good sessions", ylabel="recall (share of failed sessions)")
        axes.set(xlim=(-0.6, None), ylim=(-0.03, 1.04))
        _plain_numbers(axes)
        figure.legend(fontsize=8, loc="outside right center")

    caption = (
        f"False alarms against recall: each point is one of {len(gate.gates):,} settings of the gate. "
        "Up and to the left is better, and darker is earlier; lines are other rules at their best."
    )
    return Picture("trade-off", caption, drawn(draw, 11, 4.4))


def _plain_numbers(axes: Any) -> None:
    """A logarithmic axis writes its numbers as formulas, which are off here."""
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _draw_settings(figure: Figure, axes: Any, gate: GateFinding) -> None:
    found = gate.evidence
    # Those with the longest lead on top, where many lie on one point.
    order = np.argsort(found.lead, kind="stable")
    points = axes.scatter(
        1000 * found.false_rate[order],
        found.recall[order],
        14,
        c=100 * found.lead[order],
        cmap="viridis_r",
        vmin=0,
        linewidths=0,
        rasterized=True,
    )
    figure.colorbar(points, ax=axes, label="lead: mean share still to come (%)", pad=0.01)


def _draw_rules(axes: Any, other: RuleFinding) -> None:
    found = other.evidence
    for name, colour in RULE_COLOURS.items():
        mine = [number for number, rule in enumerate(other.rules) if rule.name == name]
        if mine:
            _draw_best(axes, found, mine, colour, f"{name} ({other.metric})", 1)


def _draw_best(axes: Any, found: Evidence, some: Sequence[int], colour: str, label: str, width: float) -> None:
    """Draw the best recall at each rate or less: what a rule can do at all."""
    order = sorted(some, key=lambda number: float(found.false_rate[number]))
    rates, recalls = 1000 * found.false_rate[order], np.maximum.accumulate(found.recall[order])
    axes.step(rates, recalls, where="post", color=colour, linewidth=width, label=label)


def _marked(gate: GateFinding) -> list[tuple[int, str, str, str]]:
    marked = [(CURRENT, "in force", IN_FORCE, "o")]
    if gate.chosen is not None and gate.chosen.setting is not None:
        marked.append((gate.chosen.setting, "chosen" if gate.chosen.ok else "best as counted", CHOSEN, "D"))
    return marked


def lead_times(gate: GateFinding) -> Picture:
    """Return how much of a failed session was still to come at its first notice."""

    def draw(figure: Figure) -> None:
        marked = _marked(gate)
        all_axes: Any = figure.subplots(1, len(marked), sharey=True, squeeze=False)[0]
        for axes, (number, name, colour, _) in zip(all_axes, marked, strict=True):
            left, share = gate.evidence.leads(number)
            axes.hist(100 * share, np.arange(0, 101, 5), color=colour, alpha=0.85)
            missed = int(gate.evidence.failed.sum()) - len(share)
            middle = f"median {np.median(left):g} traces, {np.median(share):.0%}" if len(share) else "none found"
            axes.set(title=f"{name}: {middle}; {missed} missed", xlabel="session still to come (%)", xlim=(0, 100))
        all_axes[0].set_ylabel("failed sessions")

    caption = "How early: the share of a failed session that was still to come at its first notice."
    return Picture("lead-time", caption, drawn(draw, 9.5, 2.8))


def notices_by_setting(gate: GateFinding) -> Picture:
    """Return, where there are no labels, what each window and target would raise, gain and drop as in force."""

    def draw(figure: Figure) -> None:
        axes: Any = figure.subplots()
        now = gate.gates[CURRENT]
        mine = [
            (number, setting)
            for number, setting in enumerate(gate.gates)
            if (setting.gain, setting.drop) == (now.gain, now.drop) and setting.target > 0
        ]
        targets = sorted({setting.target for _, setting in mine})
        for at, target in enumerate(targets):
            points = sorted((s.window, float(gate.evidence.per_1000[n])) for n, s in mine if s.target == target)
            shade = 0.15 + 0.7 * at / max(1, len(targets) - 1)
            axes.plot(
                *zip(*points, strict=True), ".-", color=(0.85 - shade * 0.7, 0.3, shade), label=f"target {target:g}"
            )
        axes.plot(now.window, gate.evidence.per_1000[CURRENT], "o", color=IN_FORCE, markersize=9, label="in force")
        axes.set_xscale("log")
        longest = max(setting.window for _, setting in mine)
        axes.set_xticks([window for window in TICKS if window <= longest], minor=False)
        _plain_numbers(axes)
        axes.set(xlabel="gate_window (traces)", ylabel="notices per 1,000 traces", ylim=(0, None))
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))

    caption = "What the gate would raise, by window and target, with gain and drop as in force."
    return Picture("notices", caption, drawn(draw, 9.5, 3.6))
