"""The session lane: scores of whole sessions fold into detectors as they come, and report run by run."""

from streams.core import reports
from streams.core.detectors import Detector, DetectorState, session_detectors
from streams.core.ids import short_hash
from streams.core.model import Condition, JournalKind, Lane, ReportScore, Score
from streams.core.rules import Rules
from streams.core.state import (
    MAX_HELD_BYTES,
    MAX_RUNS,
    MAX_SEEN,
    MAX_TRACE_SCORES,
    Draft,
    RunScore,
    SessionRun,
    remember,
    weight,
)


def score_seen(draft: Draft, score: Score) -> None:
    """Fold a session-lane score; one that only says `pending` changes nothing."""
    if not score.resolved or short_hash(score.score_id) in draft.seen_scores:
        return
    draft.seen_scores = remember(draft.seen_scores, score.score_id, MAX_SEEN)
    found = _fold(draft, score)
    run_id = score.eval_run_id
    if run_id is None or short_hash(run_id) in draft.decided_runs:
        _report(draft, score.score_id, (found,))
        return
    run = draft.runs.get(run_id) or SessionRun(run_id, draft.now)
    run = draft.runs[run_id] = run._replace(scores=(*run.scores, found))
    draft.held_bytes += weight(score)
    if complete(run, draft.rules):
        _decide(draft, run)
    elif len(run.scores) >= MAX_TRACE_SCORES:
        _overflow(draft, run)
    while draft.runs and (len(draft.runs) > MAX_RUNS or draft.held_bytes > MAX_HELD_BYTES):
        _overflow(draft, next(iter(draft.runs.values())))


def expire_waits(draft: Draft, as_of: int) -> None:
    """Report the runs whose wait was over at *as_of*."""
    wait = draft.rules.ms.score_wait
    for run in [item for item in draft.runs.values() if item.since + wait <= as_of]:
        _decide(draft, run)


def advance(draft: Draft) -> None:
    """Report the runs that are complete under the rules in force."""
    for run in [item for item in draft.runs.values() if complete(item, draft.rules)]:
        _decide(draft, run)


def next_due(runs: tuple[SessionRun, ...], rules: Rules) -> int | None:
    """Return when the lane's next wait runs out, or none."""
    return min((run.since + rules.ms.score_wait for run in runs), default=None)


def complete(run: SessionRun, rules: Rules) -> bool:
    """Whether every configured session metric is resolved."""
    return set(rules.session_metrics) <= {item.score.name for item in run.scores}


def _fold(draft: Draft, score: Score) -> RunScore:
    """Fold the value into the metric's detectors, in log order; without a value nothing is folded."""
    if score.value is None:
        return RunScore(score, (), None)
    known = draft.detectors.get(score.name, {})
    states: dict[str, DetectorState] = {}
    fired: list[Condition] = []
    line = draft.rules.threshold(score.name, score.threshold)
    for condition, detector, watched in session_detectors(draft.rules, line):
        states[condition], holds = _step(detector, known.get(condition), score.value)
        if holds and watched:
            fired.append(condition)
    draft.detectors = {**draft.detectors, score.name: states}
    averages = states.get(Condition.TREND) or states.get(Condition.RELATIVE)
    return RunScore(score, tuple(fired), averages.values[-1] if averages else None)


def _step(detector: Detector, state: DetectorState | None, value: float) -> tuple[DetectorState, bool]:
    return detector.step(state or detector.start(), value)


def _overflow(draft: Draft, run: SessionRun) -> None:
    draft.journal(JournalKind.OVERFLOW, "session_runs", turn_id=run.run_id)
    _decide(draft, run)


def _decide(draft: Draft, run: SessionRun) -> None:
    del draft.runs[run.run_id]
    draft.held_bytes -= sum(weight(item.score) for item in run.scores)
    draft.decided_runs = remember(draft.decided_runs, run.run_id, MAX_SEEN)
    _report(draft, run.run_id, run.scores)


def _report(draft: Draft, turn_id: str, found: tuple[RunScore, ...]) -> None:
    rules = draft.rules
    shown = tuple(
        ReportScore(
            metric=item.score.name,
            tier=0,
            trace_id=None,
            value=item.score.value,
            status=item.score.status,
            threshold=rules.threshold(item.score.name, item.score.threshold),
            conditions=item.conditions,
            reason=item.score.reason,
            average=item.average,
        )
        for item in found
    )
    named = [trace_id for item in found for trace_id in item.score.flagged_traces]
    reports.publish(draft, Lane.SESSION, turn_id, shown, flagged=named)
