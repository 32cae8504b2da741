"""A metric's values, one a session: how they lie, and what a threshold over them would have said."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SWEEP: Final = tuple(round(step * 0.05, 2) for step in range(1, 20))
BUCKETS: Final = 10
TARGET_PRECISION: Final = 0.8


@dataclass(frozen=True, slots=True)
class Confusion:
    """What a rule said of labelled sessions; a breach says that the session failed."""

    tp: int = 0
    fp: int = 0
    tn: int = 0
    fn: int = 0

    @property
    def precision(self) -> float:
        """Share of the sessions named that did fail; 0 when none was named."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0

    @property
    def recall(self) -> float:
        """Share of the failed sessions that were named; 0 when none failed."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """What a threshold over the values would have said; without labels only how often it is breached."""

    threshold: float
    breach_count: int
    confusion: Confusion | None


@dataclass(frozen=True, slots=True)
class Labeled:
    """What labels say of a metric's thresholds."""

    sessions: int
    configured: Confusion
    best_f1_threshold: float
    best_f1: float
    target_precision: float
    target_precision_threshold: float | None
    """The lowest threshold of the sweep that reaches the target precision; none when none does."""


@dataclass(frozen=True, slots=True)
class MetricValues:
    """How a metric's values lie."""

    metric: str
    threshold: float
    breach_count: int
    """Sessions whose value lies below the threshold."""
    count: int
    minimum: float
    maximum: float
    mean: float
    median: float
    stdev: float
    histogram: tuple[int, ...]
    sweep: tuple[AtThreshold, ...]
    labeled: Labeled | None


def describe(
    metric: str,
    values: Mapping[str, float],
    threshold: float,
    failed: Mapping[str, bool] | None = None,
    target_precision: float = TARGET_PRECISION,
) -> MetricValues:
    """Describe the values of a metric by session, at least one; *failed* holds the labels there are."""
    held = list(values.values())
    known = {name: failed[name] for name in values if name in failed} if failed is not None else None
    sweep = tuple(_at(line, values, known) for line in SWEEP)
    return MetricValues(
        metric=metric,
        threshold=threshold,
        breach_count=sum(value < threshold for value in held),
        count=len(held),
        minimum=min(held),
        maximum=max(held),
        mean=statistics.mean(held),
        median=statistics.median(held),
        stdev=statistics.stdev(held) if len(held) > 1 else 0.0,
        histogram=histogram(held),
        sweep=sweep,
        labeled=_labeled(sweep, _at(threshold, values, known), known, target_precision) if known else None,
    )


def histogram(values: Sequence[float]) -> tuple[int, ...]:
    """Count values in ten equal buckets of [0, 1]; 1 counts in the last."""
    counts = [0] * BUCKETS
    for value in values:
        counts[min(BUCKETS - 1, int(value * BUCKETS))] += 1
    return tuple(counts)


def agreement(
    values: Mapping[str, Mapping[str, float]], thresholds: Mapping[str, float], default: float = 0.5
) -> float | None:
    """Return the share of sessions with several metrics in which all say the same; none without such a session.

    values: session -> metric -> value.
    """
    verdicts = [
        {value < thresholds.get(metric, default) for metric, value in held.items()}
        for held in values.values()
        if len(held) > 1
    ]
    return sum(len(said) == 1 for said in verdicts) / len(verdicts) if verdicts else None


def _at(threshold: float, values: Mapping[str, float], failed: Mapping[str, bool] | None) -> AtThreshold:
    breached = {name for name, value in values.items() if value < threshold}
    if failed is None:
        return AtThreshold(threshold, len(breached), None)
    tp = sum(name in breached for name, label in failed.items() if label)
    fp = sum(name in breached for name, label in failed.items() if not label)
    wrong = sum(failed.values())
    return AtThreshold(threshold, len(breached), Confusion(tp, fp, len(failed) - wrong - fp, wrong - tp))


def _labeled(
    sweep: Sequence[AtThreshold], configured: AtThreshold, known: Mapping[str, bool], target: float
) -> Labeled:
    judged = [(at.threshold, at.confusion) for at in sweep if at.confusion is not None]
    best_threshold, best = max(judged, key=lambda item: item[1].f1)
    reaching = [line for line, confusion in judged if confusion.tp and confusion.precision >= target]
    assert configured.confusion is not None
    return Labeled(len(known), configured.confusion, best_threshold, best.f1, target, reaching[0] if reaching else None)
