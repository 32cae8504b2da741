"""A report from decided scores, the notice it may deserve, and how its turn is settled: the same for both lanes."""

from collections.abc import Sequence
from typing import Final

from streams.core import notices
from streams.core.ids import digest
from streams.core.model import (
    TRACE_LANE,
    Candidate,
    Condition,
    Decision,
    GateSnapshot,
    JournalKind,
    Lane,
    Notice,
    Outcome,
    Report,
    ReportScore,
    TurnSettled,
)
from streams.core.rules import Rules
from streams.core.state import Draft
from streams.core.text import plain

MAX_SHOWN_BYTES: Final = 192 * 1024
"""What the scores of one report may take; beyond it those without a condition are left out first."""
MAX_FLAGGED: Final = 256
MAX_SUMMARY_BYTES: Final = 2048
FEW: Final = 64
"""So many scores always have room."""

QUIET: Final = Decision.QUIET
NO_OUTCOME: Final = Outcome.NONE
POSTED = frozenset({Decision.POSTED_NEW, Decision.POSTED_AGAIN})


def publish(
    draft: Draft,
    lane: Lane,
    turn_id: str,
    scores: tuple[ReportScore, ...],
    *,
    trace_ids: tuple[str, ...] = (),
    flagged: Sequence[str] = (),
    gates: tuple[GateSnapshot, ...] = (),
    turn_number: int = 0,
    turn_input: str | None = None,
) -> None:
    """Decide on *scores* and add report, journal entry, candidate or settlement to the draft's outputs."""
    alerting = [score for score in scores if score.conditions]
    found = notices.signatures(alerting) if alerting else ()
    decision = _decide(draft, lane, scores, found)
    scores = _within_bounds(scores)
    # By position: this runs for every turn, and names take longer than the values.
    report = Report(
        draft.session_id,
        draft.project,
        lane,
        turn_id,
        turn_number,
        draft.now,
        draft.position,
        trace_ids,
        scores,
        found,
        notices.severity(alerting) if alerting else None,
        decision,
        gates,
        notices.flagged_traces(scores, flagged)[:MAX_FLAGGED] if alerting or flagged else (),
        _summary(alerting, draft.rules) if alerting else "",
        draft.rules.hash,
        draft.task,
    )
    draft.outputs.append(report)
    if decision is QUIET:
        settle(draft, lane, turn_id, NO_OUTCOME, decision)
    elif decision in POSTED:
        draft.outputs.append(_candidate(draft, report, turn_input))
    else:
        settle(draft, lane, turn_id, _journaled(draft, report), decision)


def _summary(alerting: list[ReportScore], rules: Rules) -> str:
    return plain(notices.summary(alerting, rules.gate_gain, rules.gate_target), MAX_SUMMARY_BYTES)


def _journaled(draft: Draft, report: Report) -> Outcome:
    """Add the journal entry that a decision without a candidate deserves, if any; returns the turn's outcome."""
    turn_id = report.turn_id
    match report.decision:
        case Decision.SHADOW:
            notice = _notice(report, shadow=True)
            draft.journal(JournalKind.SHADOW, "observe_only", turn_id=turn_id, detail=report.summary, notice=notice)
            return Outcome.SHADOW
        case Decision.RECOVERED:
            draft.journal(JournalKind.RECOVERY, report.decision, turn_id=turn_id)
        case Decision.PENDING:
            draft.journal(JournalKind.PENDING, "no_score_has_a_value", turn_id=turn_id)
    return Outcome.NONE


def settle(draft: Draft, lane: Lane, turn_id: str, outcome: Outcome, reason: str) -> None:
    """Say that the turn's diagnosis has landed without a candidate."""
    settled_id = digest("settled", draft.session_id, lane, turn_id)
    draft.outputs.append(
        TurnSettled(settled_id, draft.session_id, draft.project, lane, turn_id, outcome, reason, None, draft.now)
    )


def _within_bounds(scores: tuple[ReportScore, ...]) -> tuple[ReportScore, ...]:
    """Return the scores that a record has room for, in their order: alerting ones before all others."""
    if len(scores) <= FEW:
        return scores
    kept: set[int] = set()
    room = MAX_SHOWN_BYTES
    for index in sorted(range(len(scores)), key=lambda index: _rank(scores[index])):
        score = scores[index]
        room -= 128 + sum(
            len(text.encode("utf-8", "replace")) for text in (score.metric, score.trace_id or "", score.reason)
        )
        if room < 0:
            break
        kept.add(index)
    return tuple(score for index, score in enumerate(scores) if index in kept)


def _rank(score: ReportScore) -> int:
    """What is shown first where there is no room for all: breaches, then the other findings, then the rest."""
    return 0 if Condition.BREACH in score.conditions else 1 if score.conditions else 2


def _decide(draft: Draft, lane: Lane, scores: tuple[ReportScore, ...], found: tuple[str, ...]) -> Decision:
    """Fold the report into the lane's notice state."""
    valued = [score.metric for score in scores if score.value is not None]
    if not valued:
        return Decision.PENDING
    if lane is TRACE_LANE:
        cooldown = draft.rules.alert_cooldown_turns
        draft.trace_notices, decision = notices.decide(draft.trace_notices, found, cooldown)
    else:
        decision = _decide_session(draft, found, valued)
    return Decision.SHADOW if draft.rules.observe_only and decision in POSTED else decision


def _decide_session(draft: Draft, own: tuple[str, ...], valued: list[str]) -> Decision:
    """Fold a report of the session lane, which may say nothing about metrics whose findings are known."""
    state = draft.session_notices
    found = tuple(sorted({*own, *_carried(draft, state.signatures, valued)}))
    state, decision = notices.decide(state, found, draft.rules.alert_cooldown_turns)
    if decision is Decision.POSTED_AGAIN and not own:
        # Only what is carried over is due again: it is told with the next word on its metric.
        state, decision = state._replace(cooldown=0), Decision.UNCHANGED
    draft.session_notices = state
    return decision


def _carried(draft: Draft, known: tuple[str, ...], valued: list[str]) -> list[str]:
    """Return the known signatures of session metrics about which this report says nothing."""
    metrics = {name: name.split(":", 1)[1] for name in known}
    return [name for name, metric in metrics.items() if metric not in valued and metric in draft.rules.session_lane]


def _notice(report: Report, *, shadow: bool = False) -> Notice:
    assert report.severity is not None  # only a report that found something is worth a notice
    return Notice(
        notice_id=digest("notice", report.project, report.session_id, report.lane, report.turn_id),
        project=report.project,
        session_id=report.session_id,
        turn_id=report.turn_id,
        lane=report.lane,
        severity=report.severity,
        signatures=report.signatures,
        scores=tuple(score for score in report.scores if score.conditions),
        flagged_traces=report.flagged_traces,
        values=tuple((score.trace_id, score.metric, score.value) for score in report.scores if score.value is not None),
        summary=report.summary,
        time=report.decided_at,
        shadow=shadow,
        rules_hash=report.rules_hash,
    )


def _candidate(draft: Draft, report: Report, turn_input: str | None) -> Candidate:
    rules = draft.rules
    return Candidate(
        notice=_notice(report),
        position=report.position,
        index=len(draft.outputs),
        breaker_max_notices=rules.circuit_breaker_max_notices,
        breaker_window_ms=rules.ms.circuit_breaker_window,
        capture_case=rules.capture_eval_cases,
        input=turn_input,
    )
