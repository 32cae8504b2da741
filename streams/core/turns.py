"""A turn's life in the trace lane: traces join, the turn closes, scores come, it is decided, strictly in order."""

from bisect import bisect_right

from streams.core import ladder, reports
from streams.core.ids import digest, short_hash
from streams.core.model import EvalRequest, JournalKind, Lane, Outcome, Score, ScoreSource, Trace
from streams.core.rules import Rules, seconds
from streams.core.scores import admit, late
from streams.core.state import (
    MAX_EVALUATED,
    MAX_TRACES,
    Draft,
    PendingTrace,
    Turn,
    TurnTrace,
    remember,
)


def trace_seen(draft: Draft, trace: Trace) -> None:
    """Fold an announced trace: new, changed, or one that its scores stood for already."""
    draft.project = trace.project
    draft.announced = True
    if (place := _place(draft, trace.trace_id)) is not None:
        _merge(draft, *place, trace)
        return
    known = draft.pending.pop(trace.trace_id, None)
    if known is None and short_hash(trace.trace_id) in draft.evaluated:
        return
    known = known or PendingTrace(trace.trace_id, draft.now)
    trace = _merged(known.trace, trace)
    if trace.status in draft.rules.evaluated_statuses:
        _join(draft, trace, known)
    else:
        draft.pending[trace.trace_id] = known._replace(trace=trace)
    _bound(draft)


def score_seen(draft: Draft, score: Score) -> None:
    """Fold a trace-lane score that names a trace."""
    assert score.trace_id is not None
    if (place := _place(draft, score.trace_id)) is not None:
        _add_score(draft, *place, score)
        return
    known = draft.pending.get(score.trace_id)
    if known is None:
        if short_hash(score.trace_id) in draft.evaluated:
            late(draft, score, "turn_decided")
            return
        known = PendingTrace(score.trace_id, draft.now)
    scores = admit(draft, known.scores, score)
    draft.pending[score.trace_id] = known._replace(scores=scores, scored_at=draft.now)
    if known.trace is None and not draft.rules.unannounced_wait_s:
        _stand(draft, draft.pending[score.trace_id])
    _bound(draft)


def turn_score_seen(draft: Draft, score: Score) -> None:
    """Fold a score of a whole turn: it joins the oldest undecided one, or makes a report of its own."""
    if draft.turns:
        turn = draft.turns[0]
        draft.turns[0] = turn._replace(scores=admit(draft, turn.scores, score), scored_at=draft.now)
    elif score.resolved:
        shown = ladder.judge(draft.rules, score, 0, None, judged=True)
        turn_id = turn_id_of(draft, score.score_id)
        reports.publish(draft, Lane.TRACE, turn_id, (shown,), flagged=score.flagged_traces)


def expire_waits(draft: Draft, as_of: int) -> None:
    """Act on every wait that was over at *as_of*."""
    wait = seconds(draft.rules.unannounced_wait_s)
    for known in [item for item in draft.pending.values() if item.trace is None and item.since + wait <= as_of]:
        _stand(draft, known)
    if draft.turns and draft.turns[-1].closed_at is None:
        turn = draft.turns[-1]
        if turn.joined_at + seconds(draft.rules.turn_idle_s) <= as_of:
            _close(draft, turn.traces[-1].trace_id)
    for index, turn in enumerate(draft.turns):
        due = ladder.deadline(turn, draft.rules)
        if due is None or due > as_of:
            continue
        more = draft.rules.request_evals and turn.attempt < draft.rules.eval_retry_attempts
        if more and ladder.missing(turn, turn.tier, draft.rules):
            draft.turns[index] = _request(draft, turn, turn.tier)
        else:
            draft.turns[index] = turn._replace(given_up=turn.tier)


def advance(draft: Draft) -> None:
    """Request what closed turns miss, and decide turns from the oldest on, as far as they are ready."""
    if draft.rules.request_evals:
        for index, turn in enumerate(draft.turns):
            if turn.closed_at is not None and not turn.skip and not turn.attempt and turn.given_up < turn.tier:
                draft.turns[index] = _request(draft, turn, turn.tier)
    while draft.turns and draft.turns[0].closed_at is not None and _settle_oldest(draft):
        pass
    closed = sum(turn.closed_at is not None for turn in draft.turns)
    while closed > draft.rules.max_open_turns:
        _overflow(draft, "open_turns")
        closed -= 1


def next_due(turns: tuple[Turn, ...], pending: tuple[PendingTrace, ...], rules: Rules) -> int | None:
    """Return when the trace lane's next wait runs out, or none."""
    wait = seconds(rules.unannounced_wait_s)
    times = [item.since + wait for item in pending if item.trace is None]
    for turn in turns:
        if turn.closed_at is None:
            times.append(turn.joined_at + seconds(rules.turn_idle_s))
        elif (due := ladder.deadline(turn, rules)) is not None:
            times.append(due)
    return min(times, default=None)


def turn_id_of(draft: Draft, closing_id: str) -> str:
    """Return a turn's id: the session and the trace that closed it (or the score that stands alone)."""
    return f"{draft.session_id}/{closing_id}"


def _settle_oldest(draft: Draft) -> bool:
    """Bring the oldest turn one step on; returns whether it was decided."""
    turn = draft.turns[0]
    rules = draft.rules
    if turn.skip:
        _skip(draft, turn)
        return True
    if turn.given_up < 1 and ladder.missing(turn, 1, rules):
        return False
    trajectory = ladder.fold_gates(turn, draft.gates, rules)
    tier = ladder.due_tier(turn, trajectory, rules)
    if tier != ladder.READY:
        if tier != turn.tier:
            turn = turn._replace(tier=tier, tier_since=draft.now, attempt=0)
            draft.turns[0] = _request(draft, turn, tier) if rules.request_evals else turn
        return False
    _decide(draft, turn, trajectory)
    return True


def _decide(draft: Draft, turn: Turn, trajectory: ladder.Trajectory) -> None:
    """Make the turn's report from what it has; the gates move for good."""
    before, draft.gates = draft.gates, trajectory.gates
    _forget(draft, turn)
    named = [trace_id for trace in turn.traces for score in trace.scores for trace_id in score.flagged_traces]
    named += [trace_id for score in turn.scores for trace_id in score.flagged_traces]
    reports.publish(
        draft,
        Lane.TRACE,
        turn_id_of(draft, turn.closing_trace),
        ladder.final_scores(turn, trajectory, draft.rules),
        trace_ids=tuple(trace.trace_id for trace in turn.traces),
        flagged=named,
        gates=ladder.snapshots(before, draft.gates),
        turn_number=turn.number,
        turn_input=turn.input,
    )


def _skip(draft: Draft, turn: Turn) -> None:
    """Leave a turn out, as a cost control asked when it closed."""
    _forget(draft, turn)
    turn_id = turn_id_of(draft, turn.closing_trace)
    draft.journal(JournalKind.SKIP, turn.skip, turn_id=turn_id)
    reports.settle(draft, Lane.TRACE, turn_id, Outcome.NONE, turn.skip)


def _forget(draft: Draft, turn: Turn) -> None:
    """Drop the oldest turn, remembering only which traces it held and how far in time it reached."""
    del draft.turns[0]
    hashes = tuple(short_hash(trace.trace_id) for trace in turn.traces)
    draft.evaluated = (*draft.evaluated, *hashes)[-MAX_EVALUATED:]
    newest = turn.traces[-1].started_at
    draft.newest_decided = newest if draft.newest_decided is None else max(newest, draft.newest_decided)


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
        traces = (*turn.traces[:trace_index], trace._replace(scores=scores), *turn.traces[trace_index + 1 :])
        draft.turns[turn_index] = turn._replace(traces=traces, scored_at=draft.now)


def _merge(draft: Draft, turn_index: int, trace_index: int, trace: Trace) -> None:
    """Update a trace that waits in a turn: in an open turn it may move, in a closed one the order is fixed."""
    turn = draft.turns[turn_index]
    known = turn.traces[trace_index]
    if turn.closed_at is None and known.started_at != trace.started_at:
        rest = (*turn.traces[:trace_index], *turn.traces[trace_index + 1 :])
        traces = _inserted(rest, known._replace(started_at=trace.started_at))
        draft.turns[turn_index] = turn._replace(traces=traces)


def _merged(known: Trace | None, trace: Trace) -> Trace:
    """Return *trace* laid over what was known: status and start are overwritten, the rest only where it says something."""
    if known is None:
        return trace
    return trace._replace(
        ended_at=known.ended_at if trace.ended_at is None else trace.ended_at,
        turn_index=known.turn_index if trace.turn_index is None else trace.turn_index,
        input=known.input if trace.input is None else trace.input,
    )


def _inserted(traces: tuple[TurnTrace, ...], trace: TurnTrace) -> tuple[TurnTrace, ...]:
    at = bisect_right(traces, trace.started_at, key=lambda item: item.started_at)
    return (*traces[:at], trace, *traces[at:])


def _join(draft: Draft, trace: Trace, known: PendingTrace) -> None:
    """Put a completed trace into the open turn, which it may open or close."""
    if _too_late(draft, trace.started_at):
        _refuse_late(draft, known)
        return
    turn = draft.turns[-1] if draft.turns and draft.turns[-1].closed_at is None else None
    if turn and turn.turn_index != trace.turn_index and None not in (turn.turn_index, trace.turn_index):
        _close(draft, turn.traces[-1].trace_id)
        turn = None
    if trace.started_at < _closed_until(draft):
        draft.journal(JournalKind.OUT_OF_ORDER, "started_before_a_closed_turn", trace_id=trace.trace_id)
    joined = TurnTrace(trace.trace_id, trace.started_at, known.scores)
    if turn is None:
        turn = Turn((joined,), draft.now, trace.turn_index, trace.input, scored_at=known.scored_at)
        draft.turns.append(turn)
    else:
        scored = max((at for at in (turn.scored_at, known.scored_at) if at is not None), default=None)
        draft.turns[-1] = turn._replace(
            traces=_inserted(turn.traces, joined),
            joined_at=draft.now,
            turn_index=trace.turn_index if turn.turn_index is None else turn.turn_index,
            input=trace.input if turn.input is None else turn.input,
            scored_at=scored,
        )
    if trace.ends_turn or len(draft.turns[-1].traces) >= draft.rules.max_turn_traces:
        _close(draft, trace.trace_id)


def _stand(draft: Draft, known: PendingTrace) -> None:
    """Let the scores of a trace that nobody announced stand for it: a closed turn of its own, before the open one."""
    del draft.pending[known.trace_id]
    started_at = known.scores[0].created_at
    full = draft.announced and len(draft.evaluated) >= MAX_EVALUATED
    if full or all(score.source is ScoreSource.ANNOTATION for score in known.scores):
        for score in known.scores:
            late(draft, score, "trace_never_announced")
        return
    if _too_late(draft, started_at):
        _refuse_late(draft, known)
        return
    turn = Turn((TurnTrace(known.trace_id, started_at, known.scores),), draft.now, scored_at=known.scored_at)
    held = draft.turns.pop() if draft.turns and draft.turns[-1].closed_at is None else None
    draft.turns.append(turn)
    _close(draft, known.trace_id)
    if held:
        draft.turns.append(held)


def _too_late(draft: Draft, started_at: int) -> bool:
    """Whether an unknown trace may be one that was decided and forgotten."""
    full = len(draft.evaluated) >= MAX_EVALUATED
    return full and draft.newest_decided is not None and started_at <= draft.newest_decided


def _refuse_late(draft: Draft, known: PendingTrace) -> None:
    detail = f"{len(known.scores)} scores had come for it"
    draft.journal(JournalKind.LATE_TRACE, "not_newer_than_decided", trace_id=known.trace_id, detail=detail)
    draft.evaluated = remember(draft.evaluated, known.trace_id, MAX_EVALUATED)


def _closed_until(draft: Draft) -> int:
    """Return the latest start among the traces of closed turns, decided or not."""
    ends = [turn.traces[-1].started_at for turn in draft.turns if turn.closed_at is not None]
    if draft.newest_decided is not None:
        ends.append(draft.newest_decided)
    return max(ends, default=-(2**62))


def _close(draft: Draft, closing_trace: str) -> None:
    """Close the open turn: its traces are fixed, and cost controls say now whether it will be evaluated."""
    draft.turn_count += 1
    skip = _cost_control(draft)
    if not skip:
        draft.evaluated_close = draft.now
    draft.turns[-1] = draft.turns[-1]._replace(
        closed_at=draft.now,
        number=draft.turn_count,
        closing_trace=closing_trace,
        skip=skip,
        tier_since=draft.now,
    )


def _cost_control(draft: Draft) -> str:
    """Return why the turn that closes now is left out, or an empty text."""
    rules = draft.rules
    if (draft.turn_count - 1) % rules.eval_sample_every:
        return "eval_sample_every"
    last, interval = draft.evaluated_close, seconds(rules.session_min_eval_interval_s)
    if last is not None and draft.now - last < interval:
        return "session_min_eval_interval_s"
    return ""


def _request(draft: Draft, turn: Turn, tier: int) -> Turn:
    """Ask the evaluators for what the tier misses; returns the turn with the request noted."""
    metrics = ladder.missing(turn, tier, draft.rules)
    if not metrics:
        return turn
    turn_id = turn_id_of(draft, turn.closing_trace)
    traces = turn.traces if tier == 1 else turn.traces[-1:]
    request = EvalRequest(
        run_id=digest("run", draft.session_id, turn_id, tier),
        session_id=draft.session_id,
        project=draft.project,
        turn_id=turn_id,
        tier=tier,
        attempt=turn.attempt + 1,
        trace_ids=tuple(trace.trace_id for trace in traces),
        metrics=metrics,
        requested_at=draft.now,
    )
    draft.outputs.append(request)
    return turn._replace(tier_since=draft.now, attempt=turn.attempt + 1)


def _bound(draft: Draft) -> None:
    """Keep the undecided traces of a session within their bound."""
    while sum(len(turn.traces) for turn in draft.turns) + len(draft.pending) > MAX_TRACES:
        if not draft.turns:
            oldest = next(iter(draft.pending.values()))
            if oldest.trace is None:
                _stand(draft, oldest)
                continue
            del draft.pending[oldest.trace_id]
            draft.journal(JournalKind.OVERFLOW, "undecided_traces", trace_id=oldest.trace_id)
            continue
        _overflow(draft, "undecided_traces")


def _overflow(draft: Draft, reason: str) -> None:
    """Decide the oldest turn with what it has, to make room."""
    if draft.turns[0].closed_at is None:
        _close(draft, draft.turns[0].traces[-1].trace_id)
    turn = draft.turns[0]
    draft.journal(JournalKind.OVERFLOW, reason, turn_id=turn_id_of(draft, turn.closing_trace))
    if turn.skip:
        _skip(draft, turn)
    else:
        _decide(draft, turn, ladder.fold_gates(turn, draft.gates, draft.rules))
