"""The circuit breaker: too many notices of one project in too short a time become one call for a human."""

from typing import NamedTuple

from streams.core.ids import digest
from streams.core.model import (
    BreakerOutput,
    BreakerReset,
    Candidate,
    EvalCase,
    JournalEntry,
    JournalKind,
    NeedsHuman,
    Outcome,
    Severity,
    TurnSettled,
)


class Held(NamedTuple):
    """A posted notice that still counts."""

    time: int
    session_id: str
    signatures: tuple[str, ...]


class BreakerState(NamedTuple):
    """What the breaker remembers of one project, oldest notice first."""

    held: tuple[Held, ...] = ()
    tripped: bool = False
    offset: int = -1
    """The last record of the candidates log applied."""


def step(
    state: BreakerState, event: Candidate | BreakerReset, now: int
) -> tuple[BreakerState, tuple[BreakerOutput, ...]]:
    """Fold one candidate or reset; *now* is the fold's time in milliseconds."""
    if isinstance(event, BreakerReset):
        return _reset(state, event, now)
    time = max(event.notice.time, state.held[-1].time) if state.held else event.notice.time
    state, outcome = admit(state, event, time)
    return state, _outputs(state, event, outcome, time)


def admit(state: BreakerState, candidate: Candidate, time: int) -> tuple[BreakerState, Outcome]:
    """Decide what becomes of a candidate at *time*: posted, suppressed, or needs_human once."""
    limit, window = candidate.breaker_max_notices, candidate.breaker_window_ms
    if limit <= 0:
        return state, Outcome.POSTED
    held = tuple(item for item in state.held if time - item.time <= window)
    tripped = state.tripped and bool(held)
    if tripped:
        return state._replace(held=held, tripped=tripped), Outcome.SUPPRESSED
    if len(held) >= limit:
        return state._replace(held=held, tripped=True), Outcome.NEEDS_HUMAN
    notice = candidate.notice
    posted = Held(time, notice.session_id, _first(notice.signatures))
    return state._replace(held=(*held, posted), tripped=False), Outcome.POSTED


def _first(signatures: tuple[str, ...]) -> tuple[str, ...]:
    """Return as many signatures as fit into 512 bytes, so that a thousand held notices fit into one record."""
    room = 512
    kept = []
    for signature in signatures:
        room -= len(signature.encode("utf-8", "replace")) + 2
        if room < 0:
            break
        kept.append(signature)
    return tuple(kept)


def _reset(state: BreakerState, reset: BreakerReset, now: int) -> tuple[BreakerState, tuple[BreakerOutput, ...]]:
    entry = JournalEntry(
        journal_id=digest("breaker_reset", reset.project, reset.requested_at),
        kind=JournalKind.BREAKER_RESET,
        reason="was_tripped" if state.tripped else "was_closed",
        session_id=None,
        project=reset.project,
        turn_id=None,
        trace_id=None,
        metric=None,
        detail=reset.reason,
        time=now,
    )
    return BreakerState(), (entry,)


def _outputs(state: BreakerState, candidate: Candidate, outcome: Outcome, time: int) -> tuple[BreakerOutput, ...]:
    notice = candidate.notice
    settled = TurnSettled(
        settled_id=digest("settled", notice.session_id, notice.lane, notice.turn_id),
        session_id=notice.session_id,
        project=notice.project,
        lane=notice.lane,
        turn_id=notice.turn_id,
        outcome=outcome,
        reason=notice.severity,
        notice_id=notice.notice_id,
        time=time,
    )
    if outcome is Outcome.SUPPRESSED:
        return _suppressed(candidate, time), settled
    if outcome is Outcome.NEEDS_HUMAN:
        return needs_human(state, candidate, time), settled
    if candidate.capture_case and notice.severity is Severity.BREACH:
        return notice, _eval_case(candidate, time), settled
    return notice, settled


def needs_human(state: BreakerState, candidate: Candidate, time: int) -> NeedsHuman:
    """Say how many notices came in how long, of which sessions and signatures; the candidate that tripped it included."""
    notice = candidate.notice
    sessions = tuple(dict.fromkeys([*(item.session_id for item in state.held), notice.session_id]))
    found = {signature for item in state.held for signature in item.signatures} | set(notice.signatures)
    count, window = len(state.held) + 1, candidate.breaker_window_ms
    return NeedsHuman(
        needs_human_id=digest("needs_human", notice.notice_id),
        project=notice.project,
        session_id=notice.session_id,
        turn_id=notice.turn_id,
        notices=count,
        window_ms=window,
        sessions=sessions,
        signatures=tuple(sorted(found)),
        summary=(
            f"{count} notices within {window / 1000:g} s in project {notice.project} "
            f"({len(sessions)} sessions): notices are held back until a human has looked, or until it is quiet"
        ),
        time=time,
    )


def _suppressed(candidate: Candidate, time: int) -> JournalEntry:
    notice = candidate.notice
    return JournalEntry(
        journal_id=digest("suppressed", notice.notice_id),
        kind=JournalKind.SUPPRESSED,
        reason="breaker_tripped",
        session_id=notice.session_id,
        project=notice.project,
        turn_id=notice.turn_id,
        trace_id=None,
        metric=None,
        detail=notice.summary,
        time=time,
        notice=notice,
    )


def _eval_case(candidate: Candidate, time: int) -> EvalCase:
    notice = candidate.notice
    return EvalCase(
        case_id=digest("case", notice.notice_id),
        project=notice.project,
        session_id=notice.session_id,
        turn_id=notice.turn_id,
        signatures=notice.signatures,
        baseline=notice.values,
        input=candidate.input,
        time=time,
    )
