"""Everything a calibration finds out, from what was seen of the sessions and the labels there are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from streams.calibration.abstentions import FEW_LABELS, Abstention, Shape, abstentions, one_sided, shape, too_few
from streams.calibration.choosing import Chosen, HeldOut, Parts, best, choose, cut, folds, held_out
from streams.calibration.evidence import Evidence, evidence
from streams.calibration.grid import gates
from streams.calibration.lines import BEHIND
from streams.calibration.pacing import PaceSetting, Pacing
from streams.calibration.rules import Rule, sweep_rules
from streams.calibration.seen import Seen
from streams.calibration.sweep import sweep
from streams.calibration.tracks import Tracks
from streams.calibration.values import MetricValues, agreement, describe
from streams.core.gate import Gate
from streams.core.pace import Pace
from streams.core.rules import Rules

CURRENT: Final = 0
"""The number of the current setting among those tried."""
BUDGETS: Final = (1 / 20, 1 / 50, 1 / 100, 1 / 200, 1 / 500, 1 / 1000)

ONE_VALUE: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "last": lambda values: values[-1],
    "lowest": min,
    "mean": fmean,
}
"""How the values of a session become the one that a threshold is held against."""


@dataclass(frozen=True)
class RuleFinding:
    """What the rules beside the gate would have said of one metric."""

    metric: str
    rules: tuple[Rule, ...]
    evidence: Evidence

    def within(self, rate: float) -> dict[str, int]:
        """Return each kind of rule with its best setting whose false alarms per trace, as counted, are at most *rate*."""
        found: dict[str, int] = {}
        for name in dict.fromkeys(rule.name for rule in self.rules):
            mine = np.array([rule.name == name for rule in self.rules], np.bool_)
            setting = best(self.evidence, mine & (self.evidence.false_rate <= rate))
            if setting is not None:
                found[name] = setting
        return found


@dataclass(frozen=True)
class GateFinding:
    """What each setting of the gate would have said, the current one first."""

    tracks: Tracks
    gates: tuple[Gate, ...]
    evidence: Evidence
    chosen: Chosen | None

    def within(self, rate: float) -> int | None:
        """Return the best setting whose false alarms per trace, as counted, are at most *rate*."""
        if not self.evidence.two_sided:
            return None
        return best(self.evidence, self.evidence.false_rate <= rate)

    @property
    def best_f1(self) -> int:
        return int(np.argmax(self.evidence.f1))


@dataclass(frozen=True)
class Contender:
    """The gate or pace at a budget of false alarms.

    setting: the number of its best setting as counted on all sessions; none where none finds anything.
    held_out: what is chosen so without a part of the sessions, counted on that part, all parts together.
    """

    evidence: Evidence
    setting: int | None
    held_out: HeldOut


@dataclass(frozen=True)
class PaceFinding:
    """What each setting of pace would have said, and the gate at the same budget.

    Its evidence judges every session by lines that were not learned from that session's part.

    rate: the budget at which both are compared, false alarms per trace.
    paces: the lines of the chosen setting, else of the best as counted, learned from all sessions; they may be none.
    learned_from: how many sessions that is.
    """

    settings: tuple[PaceSetting, ...]
    rate: float
    pace: Contender
    gate: Contender
    chosen: Chosen | None
    paces: tuple[Pace, ...]
    learned_from: int

    @property
    def evidence(self) -> Evidence:
        return self.pace.evidence

    @property
    def setting(self) -> int | None:
        """The setting whose lines these are."""
        return self.chosen.setting if self.chosen is not None else self.pace.setting


@dataclass(frozen=True)
class Calibration:
    """What was found; without tier-1 series there is no gate."""

    rules: Rules
    sessions: int
    labels: Mapping[str, bool] | None
    values: tuple[MetricValues, ...]
    by_metric: Mapping[str, Mapping[str, float]]
    """Metric -> session -> the value that a threshold is held against."""
    one_value: str
    agreement: float | None
    shapes: Mapping[str, Shape]
    abstentions: tuple[Abstention, ...]
    gate: GateFinding | None
    others: tuple[RuleFinding, ...]
    pace: PaceFinding | None = None
    """None without a budget and without labels on both sides."""


@dataclass(frozen=True)
class Wish:
    """What is asked of a calibration.

    budget: false alarms per trace of good sessions; none: choose nothing.
    by_task: learn a pace line for each task with enough sessions.
    """

    labels: Mapping[str, bool] | None = None
    budget: float | None = None
    confidence: float = 0.95
    target_precision: float = 0.8
    one_value: str = "last"
    by_task: bool = False


def calibrate(seen: Seen, rules: Rules, wish: Wish) -> Calibration:
    """Find out what the sessions seen say of thresholds, gate settings and other rules."""
    names = set(seen.projects)
    labels = None if wish.labels is None else {name: label for name, label in wish.labels.items() if name in names}
    one = ONE_VALUE[wish.one_value]
    by_metric = {
        metric: {name: one(values) for name, values in held.items()} for metric, held in sorted(seen.values.items())
    }
    by_session: dict[str, dict[str, float]] = {name: {} for name in names}
    for metric, held in by_metric.items():
        for name, value in held.items():
            by_session[name][metric] = value
    lines = {metric: rules.threshold(metric, None) for metric in by_metric}
    described = (describe(name, held, lines[name], labels, wish.target_precision) for name, held in by_metric.items())
    tracks = seen.gate_tracks()
    shapes = {
        metric: shape(series, rules.gate) for at, metric in enumerate(tracks.metrics) if (series := tracks.metric(at))
    }
    found = [item for metric, held in shapes.items() for item in abstentions(metric, held, rules.gate)]
    sided = one_sided(labels) if labels is not None else None
    alone = [*shapes, *(metric for metric in seen.session_metrics if metric not in shapes)]
    gate = _gate(tracks, rules, labels, wish) if shapes else None
    pace = _pace(gate, seen.tasks if wish.by_task else None, labels is None, wish) if gate else None
    few = too_few(pace.learned_from, BEHIND) if pace else None
    return Calibration(
        rules=rules,
        sessions=len(names),
        labels=labels,
        values=tuple(described),
        by_metric=by_metric,
        one_value=wish.one_value,
        agreement=agreement(by_session, lines),
        shapes=shapes,
        abstentions=(*found, *(item for item in (sided, few) if item is not None)),
        gate=gate,
        others=tuple(_others(seen, metric, rules, labels) for metric in alone),
        pace=pace,
    )


def _gate(tracks: Tracks, rules: Rules, labels: Mapping[str, bool] | None, wish: Wish) -> GateFinding:
    tried = gates(rules.gate, int(tracks.lengths.max(initial=0)), tracks.traces)
    found = evidence(tracks, sweep(tracks, tried), labels)
    chosen = None
    if wish.budget is not None and labels is not None:
        chosen = choose(found, tracks.names, wish.budget, wish.confidence, FEW_LABELS)
    return GateFinding(tracks, tuple(tried), found, chosen)


def _pace(gate: GateFinding, tasks: Mapping[str, str] | None, strict: bool, wish: Wish) -> PaceFinding | None:
    """Learn pace and hold it beside the gate; without labels every alarm of either counts as false."""
    of_gate = gate.evidence.strictly() if strict else gate.evidence
    if wish.budget is None and (strict or not of_gate.two_sided):
        return None
    names, rate = gate.tracks.names, wish.budget
    if rate is None:
        rate = float(of_gate.false_rate[CURRENT])
    own = None if tasks is None else [tasks.get(name) for name in names]
    pacing = Pacing(gate.tracks, of_gate, own, folds(of_gate.failed, names))
    found = pacing.judged
    chosen = None
    if wish.budget is not None:
        chosen = choose(found, names, wish.budget, wish.confidence, FEW_LABELS, pacing.parts)

    def contender(evidence: Evidence, parts: Parts) -> Contender:
        setting = best(evidence, evidence.false_rate <= rate)
        return Contender(evidence, setting, held_out(parts, rate, wish.confidence, proven=False))

    mine = contender(found, pacing.parts)
    setting = chosen.setting if chosen is not None else mine.setting
    return PaceFinding(
        settings=pacing.settings,
        rate=rate,
        pace=mine,
        gate=contender(of_gate, cut(of_gate, names)),
        chosen=chosen,
        paces=() if setting is None else pacing.paces(pacing.settings[setting]),
        learned_from=int(of_gate.good.sum()),
    )


def _others(seen: Seen, metric: str, rules: Rules, labels: Mapping[str, bool] | None) -> RuleFinding:
    tracks = seen.metric_tracks(metric)
    tried, found = sweep_rules(tracks, rules)
    return RuleFinding(metric, tuple(tried), evidence(tracks, found, labels))
