"""The eleven metrics: what each is about, how its value comes about, and in which runs it may be asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from streams.core.model import ScoreTarget
from streams.errors import BadRun


class MetricKind(StrEnum):
    """How a metric's value comes about."""

    JUDGE = "judge"
    """A judge reads the whole trace."""
    EMBEDDING = "embedding"
    """Texts of the trace are compared as vectors."""
    ARITHMETIC = "arithmetic"
    """Computed from signals that are scored already."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    target: ScoreTarget
    """What one score of it is about."""
    kind: MetricKind
    signal: bool = False
    """Whether session metrics are computed from it."""
    run_target: ScoreTarget = ScoreTarget.TRACE
    """The runs that may ask for it: those over traces, or those over sessions."""
    threshold: float = 0.5
    """The pass line, in [0, 1]: a value at or above it is a success."""


_TRACE, _SESSION = ScoreTarget.TRACE, ScoreTarget.SESSION
_JUDGE, _EMBEDDING, _ARITHMETIC = MetricKind.JUDGE, MetricKind.EMBEDDING, MetricKind.ARITHMETIC

METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("task_completion", _TRACE, _JUDGE),
        Metric("tool_correctness", _TRACE, _JUDGE, signal=True),
        Metric("argument_correctness", _TRACE, _JUDGE),
        Metric("step_efficiency", _TRACE, _JUDGE),
        Metric("confidence", _TRACE, _JUDGE, signal=True),
        Metric("plan_adherence", _TRACE, _JUDGE),
        Metric("plan_quality", _TRACE, _JUDGE),
        Metric("coherence", _TRACE, _EMBEDDING, signal=True),
        # A trace says nothing of loops without its session: a session's run scores each of its traces.
        Metric("loop_detection", _TRACE, _EMBEDDING, signal=True, run_target=_SESSION),
        Metric("agent_reliability", _SESSION, _ARITHMETIC, run_target=_SESSION),
        Metric("agent_consistency", _SESSION, _ARITHMETIC, run_target=_SESSION),
    )
}


def runnable(target: ScoreTarget) -> tuple[str, ...]:
    """Return the names of the metrics that a run over *target* may ask for, in the registry's order."""
    return tuple(metric.name for metric in METRICS.values() if metric.run_target is target)


def check_metrics(names: Iterable[str], target: ScoreTarget) -> tuple[str, ...]:
    """Return *names* without repeats, as a run over *target* will ask for them.

    Raises:
        BadRun: there is none, or one that such a run cannot ask for.
    """
    chosen = tuple(dict.fromkeys(names))
    allowed = ", ".join(runnable(target))
    if not chosen:
        raise BadRun(f"a run needs at least one metric; over a {target} these are possible: {allowed}")
    for name in chosen:
        if name not in METRICS:
            raise BadRun(f"there is no metric {name!r}; over a {target} these are possible: {allowed}")
        if METRICS[name].run_target is not target:
            other = METRICS[name].run_target
            raise BadRun(f"{name} needs a run over a {other}; over a {target} these are possible: {allowed}")
    return chosen
