"""How traces and their scores reach a turn: announced or not, in order or not, within bounds."""

from bisect import bisect_right

from streams.core import ladder, reports, turns
from streams.core.ids import short_hash
from streams.core.model import JournalKind, Lane, Score, ScoreSource, Trace
from streams.core.rules import Rules
from streams.core.scores import admit, late
from streams.core.state import (
    MAX_EVALUATED,
    MAX_HELD_BYTES,
    MAX_SEEN,
    MAX_TRACES,
    Draft,
    PendingTrace,
    Turn,
    TurnTrace,
    base_weight,
    remember,
    weight,
)


def trace_seen(draft: Draft, trace: Trace) -> None:
    """Fold an announced trace: new, changed, or one that its scores stood for already."""
    draft.project = trace.project
    draft.announced = True
    if trace.task is not None:
        draft.task = draft.task or trace.task
        trace = trace._replace(task=None)  # known now, and held once
    if (place := _place(draft, trace.trace_id)) is not None:
        _update(draft, *place, trace)
        return
    known = draft.pending.get(trace.trace_id) if draft.pending else None
    if known is None:
        if short_hash(trace.trace_id) in draft.evaluated:
            return
        known = PendingTrace(trace.trace_id, draft.now)
    if known.trace is not None:
        trace = _merged(known.trace, trace)
    if trace.status in draft.rules.evaluated_statuses:
        _join(draft, trace, known)
    else:
        _hold(draft, known._replace(trace=trace))
    bound(draft)


def score_seen(draft: Draft, score: Score) -> None:
    """Fold a trace-lane score that names a trace."""
    assert score.trace_id is not None
    if (place := _place(draft, score.trace_id)) is not None:
        turn_index, trace_index = place
        _add_score(draft, turn_index, trace_index, score)
        return
    known = draft.pending.get(score.trace_id)
    if known is None:
        if short_hash(score.trace_id) in draft.evaluated:
            late(draft, score, "turn_decided")
            return
        known = _hold(draft, PendingTrace(score.trace_id, draft.now))
    scores = admit(draft, known.scores, score)
    if scores is not known.scores:
        known = draft.pending[score.trace_id] = known._replace(scores=scores, scored_at=draft.now)
    if known.trace is None and not draft.rules.unannounced_wait_s:
        _stand(draft, known)
    bound(draft)


def turn_score_seen(draft: Draft, score: Score) -> None:
    """Fold a score of a whole turn: it joins the oldest undecided one, or makes a report of its own."""
    if draft.turns:
        turn = draft.turns[0]
        scores = admit(draft, turn.scores, score)
        if scores is not turn.scores:
            draft.turns[0] = turns.scored(turn, draft.now, turn.traces, scores)
            bound(draft)
    elif score.resolved and short_hash(score.score_id) not in draft.seen_scores:
        draft.seen_scores = remember(draft.seen_scores, score.score_id, MAX_SEEN)
        shown = ladder.judge(draft.rules, score, 0, None, judged=True)
        turn_id = turns.turn_id_of(draft, score.score_id)
        reports.publish(draft, Lane.TRACE, turn_id, (shown,), flagged=score.flagged_traces)


def expire_waits(draft: Draft, as_of: int) -> None:
    """Let the scores stand for every trace whose announcement was waited for until *as_of* or longer, oldest first."""
    wait = draft.rules.ms.unannounced_wait
    over = [known for known in draft.pending.values() if known.trace is None and known.since + wait <= as_of]
    for known in sorted(over, key=_standing_start):
        _stand(draft, known)


def next_due(pending: tuple[PendingTrace, ...], rules: Rules) -> int | None:
    """Return when the next wait for an announcement runs out, or none."""
    wait = rules.ms.unannounced_wait
    return min((known.since + wait for known in pending if known.trace is None), default=None)


def bound(draft: Draft) -> None:
    """Keep what a session holds undecided within its bounds: the oldest goes first, decided with what it has."""
    while _too_many(draft):
        if draft.turns:
            turns.overflow(draft, "undecided_traces")
            continue
        if not draft.pending:
            return
        oldest = next(iter(draft.pending.values()))
        draft.journal(JournalKind.OVERFLOW, "undecided_traces", trace_id=oldest.trace_id)
        if oldest.trace is None:
            _stand(draft, oldest)
        else:
            _drop(draft, oldest)


def _too_many(draft: Draft) -> bool:
    if draft.held_bytes > MAX_HELD_BYTES:
        return True
    held = len(draft.pending)
    for turn in draft.turns:
        held += len(turn.traces)
    return held > MAX_TRACES


def _hold(draft: Draft, known: PendingTrace) -> PendingTrace:
    """Keep a trace that cannot join a turn yet; one that is kept already stays in its place."""
    before = draft.pending.get(known.trace_id)
    draft.held_bytes += base_weight(known) - (base_weight(before) if before else 0)
    draft.pending[known.trace_id] = known
    return known


def _drop(draft: Draft, known: PendingTrace) -> None:
    """Forget a trace with its scores, if it is held."""
    if draft.pending.pop(known.trace_id, None) is not None:
        draft.held_bytes -= weight(known)


def _moved(draft: Draft, known: PendingTrace, started_at: int) -> TurnTrace:
    """Turn a trace, held or just come, into one of a turn."""
    trace = TurnTrace(known.trace_id, started_at, known.scores)
    draft.held_bytes += base_weight(trace)
    if draft.pending.pop(known.trace_id, None) is not None:
        draft.held_bytes -= base_weight(known)
    return trace


def _place(draft: Draft, trace_id: str) -> tuple[int, int] | None:
    """Return where an undecided turn holds the trace: indexes of the turn and of the trace in it."""
    for turn_index in range(len(draft.turns) - 1, -1, -1):
        for trace_index, trace in enumerate(draft.turns[turn_index].traces):
            if trace.trace_id == trace_id:
                return turn_index, trace_index
    return None


def _add_score(draft: Draft, turn_index: int, trace_index: int, score: Score) -> None:
    turn = draft.turns[turn_index]
    trace = turn.traces[trace_index]
    scores = admit(draft, trace.scores, score)
    if scores is not trace.scores:
        scored = TurnTrace(trace.trace_id, trace.started_at, scores)
        traces = (*turn.traces[:trace_index], scored, *turn.traces[trace_index + 1 :])
        draft.turns[turn_index] = turns.scored(turn, draft.now, traces, turn.scores)


def _update(draft: Draft, turn_index: int, trace_index: int, trace: Trace) -> None:
    """Update a trace that waits in a turn: in an open turn it may move or close it, in a closed one all is fixed."""
    turn = draft.turns[turn_index]
    if turn.closed_at is not None:
        return
    known = turn.traces[trace_index]
    if known.started_at != trace.started_at:
        rest = (*turn.traces[:trace_index], *turn.traces[trace_index + 1 :])
        turn = turn._replace(traces=_inserted(rest, known._replace(started_at=trace.started_at)))
    draft.turns[turn_index] = _with_input(turn, trace)
    if trace.ends_turn:
        turns.close(draft, trace.trace_id)


def _merged(known: Trace, trace: Trace) -> Trace:
    """Return *trace* laid over what was known: status and start are overwritten, the rest only where it says something."""
    return trace._replace(
        ended_at=known.ended_at if trace.ended_at is None else trace.ended_at,
        turn_index=known.turn_index if trace.turn_index is None else trace.turn_index,
        input=known.input if trace.input is None else trace.input,
    )


def _inserted(traces: tuple[TurnTrace, ...], trace: TurnTrace) -> tuple[TurnTrace, ...]:
    at = bisect_right(traces, trace.started_at, key=lambda item: item.started_at)
    return (*traces[:at], trace, *traces[at:])


def _with_input(turn: Turn, trace: Trace) -> Turn:
    """A turn's input is that of the trace that started first."""
    first = turn.traces[0].trace_id == trace.trace_id and trace.input is not None
    return turn._replace(input=trace.input) if first else turn


def _join(draft: Draft, trace: Trace, known: PendingTrace) -> None:
    """Put a completed trace into the open turn, which it may open or close."""
    if known.trace is None and _too_late(draft, trace.started_at):
        _refuse_late(draft, known)
        return
    turn = draft.turns[-1] if draft.turns and draft.turns[-1].closed_at is None else None
    if turn and turn.turn_index != trace.turn_index and None not in (turn.turn_index, trace.turn_index):
        turns.close(draft, turn.traces[-1].trace_id)
        turn = None
    if trace.started_at < _closed_until(draft):
        draft.journal(JournalKind.OUT_OF_ORDER, "started_before_a_closed_turn", trace_id=trace.trace_id)
    joined = _moved(draft, known, trace.started_at)
    if turn is None:
        turn = Turn((joined,), draft.now, trace.turn_index, trace.input, scored_at=known.scored_at)
        draft.turns.append(turn)
    else:
        scored_at = turn.scored_at
        if known.scored_at is not None:
            scored_at = known.scored_at if scored_at is None else max(scored_at, known.scored_at)
        turn = turn._replace(
            traces=_inserted(turn.traces, joined),
            joined_at=draft.now,
            turn_index=trace.turn_index if turn.turn_index is None else turn.turn_index,
            scored_at=scored_at,
        )
        draft.turns[-1] = _with_input(turn, trace)
    if trace.ends_turn or len(turn.traces) >= draft.rules.max_turn_traces:
        turns.close(draft, trace.trace_id)


def _stand(draft: Draft, known: PendingTrace) -> None:
    """Let the scores of a trace that nobody announced stand for it: a closed turn of its own, before the open one."""
    started_at = _standing_start(known)
    full = draft.announced and len(draft.evaluated) >= MAX_EVALUATED
    if full or all(score.source is ScoreSource.ANNOTATION for score in known.scores):
        _drop(draft, known)
        for score in known.scores:
            late(draft, score, "trace_never_announced")
        return
    if _too_late(draft, started_at):
        _refuse_late(draft, known)
        return
    turn = Turn((_moved(draft, known, started_at),), draft.now, scored_at=known.scored_at)
    held = draft.turns.pop() if draft.turns and draft.turns[-1].closed_at is None else None
    draft.turns.append(turn)
    turns.close(draft, known.trace_id)
    if held:
        draft.turns.append(held)


def _standing_start(known: PendingTrace) -> int:
    """When a trace known from its scores only counts as started: when the first of them was made."""
    return min((score.created_at for score in known.scores), default=known.since)


def _too_late(draft: Draft, started_at: int) -> bool:
    """Whether an unknown trace may be one that was decided and forgotten."""
    full = len(draft.evaluated) >= MAX_EVALUATED
    return full and draft.newest_decided is not None and started_at <= draft.newest_decided


def _refuse_late(draft: Draft, known: PendingTrace) -> None:
    _drop(draft, known)
    detail = f"{len(known.scores)} scores had come for it"
    draft.journal(JournalKind.LATE_TRACE, "not_newer_than_decided", trace_id=known.trace_id, detail=detail)
    draft.evaluated = remember(draft.evaluated, known.trace_id, MAX_EVALUATED)


def _closed_until(draft: Draft) -> int:
    """Return the latest start among the traces of closed turns, decided or not."""
    latest = -(2**62) if draft.newest_decided is None else draft.newest_decided
    for turn in draft.turns:
        if turn.closed_at is not None:
            latest = max(latest, turn.traces[-1].started_at)
    return latest
