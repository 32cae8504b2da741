"""What evaluators are asked for an eval run: its targets, in parts, each of one session; a function of what was found."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from streams.core.model import EvalRequest, ScoreTarget
from streams.core.run_targets import TraceFacts, pick_sessions, pick_traces, sample
from streams.core.runs import EvalRun

PART_TRACES: Final = 16
"""Traces asked for at once: few, so that a run's progress shows."""
NOTHING: Final = -1
"""A share of a limit that is used up; 0 would be no limit."""


class Part(NamedTuple):
    """One request of a run."""

    session_id: str
    trace_ids: tuple[str, ...]
    metrics: tuple[str, ...]


class FailedScore(NamedTuple):
    """A score without value: of a trace, or of a session."""

    session_id: str
    trace_id: str | None
    metric: str


class Limits(NamedTuple):
    """What a run's judges may be asked; 0: any number."""

    evals: int = 0
    tokens: int = 0


def planned(run: EvalRun, traces: Iterable[TraceFacts], trace_metrics: Collection[str]) -> tuple[Part, ...]:
    """Return the parts of a run that picks its targets among *traces*.

    trace_metrics: those that score one trace; where a run over sessions asks for one, it names all traces of each.
    """
    if run.target is ScoreTarget.TRACE:
        picked = {trace.trace_id: trace for trace in pick_traces(traces, run.project, run.filters)}
        taken = sample(tuple(picked), run.sampling_rate, run.run_id)
        return _in_parts([(picked[trace_id].session_id, trace_id, run.metrics) for trace_id in taken])
    traces = tuple(traces)
    sessions = sample(pick_sessions(traces, run.project, run.filters), run.sampling_rate, run.run_id)
    named: dict[str, list[TraceFacts]] = {session_id: [] for session_id in sessions}
    if not set(trace_metrics).isdisjoint(run.metrics):
        for trace in traces:
            if trace.session_id in named:
                named[trace.session_id].append(trace)
    return tuple(Part(session_id, _in_order(held), run.metrics) for session_id, held in named.items())


def planned_again(run: EvalRun, failed: Iterable[FailedScore]) -> tuple[Part, ...]:
    """Return the parts of a run that asks again for exactly those scores of another run that have no value."""
    wanted = sorted(set(failed), key=lambda score: (score.session_id, score.trace_id or "", score.metric))
    if run.target is ScoreTarget.TRACE:
        by_trace: dict[tuple[str, str], tuple[str, ...]] = {}
        for session_id, trace_id, metric in wanted:
            if trace_id is not None:
                key = session_id, trace_id
                by_trace[key] = (*by_trace.get(key, ()), metric)
        return _in_parts([(session_id, trace_id, metrics) for (session_id, trace_id), metrics in by_trace.items()])
    by_session: dict[str, list[FailedScore]] = {}
    for score in wanted:
        by_session.setdefault(score.session_id, []).append(score)
    return tuple(
        Part(
            session_id,
            tuple(dict.fromkeys(score.trace_id for score in held if score.trace_id is not None)),
            tuple(dict.fromkeys(score.metric for score in held)),
        )
        for session_id, held in by_session.items()
    )


def target_count(run: EvalRun, parts: Sequence[Part]) -> int:
    """Return how many traces or sessions the parts are about."""
    return sum(len(part.trace_ids) for part in parts) if run.target is ScoreTarget.TRACE else len(parts)


def requests(run: EvalRun, parts: Sequence[Part], judged: Collection[str], limits: Limits) -> tuple[EvalRequest, ...]:
    """Return what evaluators are asked, a request a part, with its share of what the run may cost.

    judged: the metrics that a judge is asked for: what counts towards the limits.
    """
    costs = [len(part.trace_ids) * len(set(judged).intersection(part.metrics)) for part in parts]
    evals, tokens = _first_come(limits.evals, costs), _proportional(limits.tokens, costs)
    return tuple(
        EvalRequest(
            run_id=run.run_id,
            session_id=part.session_id,
            project=run.project,
            turn_id="",
            tier=0,
            attempt=1,
            trace_ids=part.trace_ids,
            metrics=part.metrics,
            requested_at=run.created_at,
            part=number,
            model=run.model,
            signal_weights=run.signal_weights,
            thresholds=run.thresholds,
            max_evals=evals[number],
            max_tokens=tokens[number],
        )
        for number, part in enumerate(parts)
    )


def _in_parts(wanted: Iterable[tuple[str, str, tuple[str, ...]]]) -> tuple[Part, ...]:
    """Put traces of one session and with the same metrics together, so many at once."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for session_id, trace_id, metrics in wanted:
        groups.setdefault((session_id, metrics), []).append(trace_id)
    return tuple(
        Part(session_id, tuple(ids[at : at + PART_TRACES]), metrics)
        for (session_id, metrics), ids in groups.items()
        for at in range(0, len(ids), PART_TRACES)
    )


def _in_order(traces: Iterable[TraceFacts]) -> tuple[str, ...]:
    ordered = sorted(traces, key=lambda trace: (trace.started_at, trace.trace_id))
    return tuple(trace.trace_id for trace in ordered)


def _first_come(limit: int, costs: Sequence[int]) -> list[int]:
    """Share a limit out whole: each part gets what it can use, until nothing is left."""
    shares, left = [], limit
    for cost in costs:
        shares.append(min(cost, left) or NOTHING if limit and cost else 0)
        left -= min(cost, left)
    return shares


def _proportional(limit: int, costs: Sequence[int]) -> list[int]:
    """Share a limit out by what the parts ask for: what they will need of it is not known before."""
    total = sum(costs)
    return [limit * cost // total or NOTHING if limit and cost else 0 for cost in costs]
