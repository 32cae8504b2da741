"""A turn's life from its closing on: what it misses is asked for, it is decided, strictly in order."""

from streams.core import ladder, reports
from streams.core.ids import digest, short_hash
from streams.core.model import TRACE_LANE, EvalRequest, JournalKind, Outcome, Score
from streams.core.rules import Rules
from streams.core.state import MAX_EVALUATED, Draft, Turn, TurnTrace, weight


def scored(turn: Turn, now: int, traces: tuple[TurnTrace, ...], scores: tuple[Score, ...]) -> Turn:
    """Return the turn with the scores it has now, the latest at *now*: a wait that had run out starts anew."""
    # This runs for every score: _replace takes five times as long as this, and calling the class twice.
    _, joined, index, text, _, _, closed, number, closing, skip, tier, since, attempt, given_up = turn
    given_up = given_up if given_up < tier else tier - 1
    fields = traces, joined, index, text, scores, now, closed, number, closing, skip, tier, since, attempt, given_up
    return tuple.__new__(Turn, fields)


def close(draft: Draft, closing_trace: str) -> None:
    """Close the open turn: its traces are fixed, and cost controls say now whether it will be evaluated."""
    draft.turn_count += 1
    skip = _cost_control(draft)
    if not skip:
        draft.evaluated_close = draft.now
    now, number = draft.now, draft.turn_count
    # Unpacked, and by position, as it takes half as long as _replace.
    traces, joined, index, text, scores, scored_at, _, _, _, _, tier, _, attempt, given_up = draft.turns[-1]
    draft.turns[-1] = Turn(
        traces, joined, index, text, scores, scored_at, now, number, closing_trace, skip, tier, now, attempt, given_up
    )


def _cost_control(draft: Draft) -> str:
    """Return why the turn that closes now is left out, or an empty text."""
    rules = draft.rules
    if (draft.turn_count - 1) % rules.eval_sample_every:
        return "eval_sample_every"
    last, interval = draft.evaluated_close, rules.ms.session_min_eval_interval
    if last is not None and draft.now - last < interval:
        return "session_min_eval_interval_s"
    return ""


def advance(draft: Draft) -> None:
    """Request what closed turns miss, and decide turns from the oldest on, as far as they are ready."""
    if draft.rules.request_evals:
        for index, turn in enumerate(draft.turns):
            if turn.closed_at is not None and not turn.skip and not turn.attempt and turn.given_up < turn.tier:
                draft.turns[index] = _request(draft, turn, turn.tier)
    _settle(draft)
    most = draft.rules.max_open_turns
    while len(draft.turns) > most and _closed(draft) > most:
        overflow(draft, "open_turns")
        _settle(draft)


def expire_waits(draft: Draft, as_of: int) -> None:
    """Act on every wait of a turn that was over at *as_of*: close it when idle, else ask again or give the tier up."""
    idle = draft.rules.ms.turn_idle
    if draft.turns and (turn := draft.turns[-1]).closed_at is None and turn.joined_at + idle <= as_of:
        close(draft, turn.traces[-1].trace_id)
    for index, turn in enumerate(draft.turns):
        due = ladder.deadline(turn, draft.rules)
        if due is None or due > as_of:
            continue
        more = draft.rules.request_evals and turn.attempt < draft.rules.eval_retry_attempts
        if more and ladder.lacks(turn, turn.tier, draft.rules):
            draft.turns[index] = _request(draft, turn, turn.tier)
        else:
            draft.turns[index] = turn._replace(given_up=turn.tier)


def next_due(turns: tuple[Turn, ...], rules: Rules) -> int | None:
    """Return when the next wait of an undecided turn runs out, or none."""
    first: int | None = None
    for turn in turns:
        due = turn.joined_at + rules.ms.turn_idle if turn.closed_at is None else ladder.deadline(turn, rules)
        if due is not None and (first is None or due < first):
            first = due
    return first


def overflow(draft: Draft, reason: str) -> None:
    """Decide the oldest turn with what it has, to make room."""
    if draft.turns[0].closed_at is None:
        close(draft, draft.turns[0].traces[-1].trace_id)
    turn = draft.turns[0]
    draft.journal(JournalKind.OVERFLOW, reason, turn_id=turn_id_of(draft, turn.closing_trace))
    if turn.skip:
        _skip(draft, turn)
    else:
        _decide(draft, turn, ladder.fold_trajectory(turn, draft.gates, draft.paces, draft.task, draft.rules))


def turn_id_of(draft: Draft, closing_id: str) -> str:
    """Return a turn's id: the session and the trace that closed it (or the score that stands alone)."""
    return f"{draft.session_id}/{closing_id}"


def _request(draft: Draft, turn: Turn, tier: int) -> Turn:
    """Ask the evaluators for what the tier misses; returns the turn with the request noted."""
    metrics = ladder.missing(turn, tier, draft.rules)
    if not metrics:
        return turn
    traces = turn.traces if tier == 1 else turn.traces[-1:]
    _ask(draft, turn, tier, tuple([trace.trace_id for trace in traces]), metrics)
    return turn._replace(tier_since=draft.now, attempt=turn.attempt + 1)


def _ask(draft: Draft, turn: Turn, tier: int, trace_ids: tuple[str, ...], metrics: tuple[str, ...]) -> None:
    turn_id = turn_id_of(draft, turn.closing_trace)
    request = EvalRequest(
        run_id=digest("run", draft.session_id, turn_id, tier),
        session_id=draft.session_id,
        project=draft.project,
        turn_id=turn_id,
        tier=tier,
        attempt=turn.attempt + 1 if tier else 1,
        trace_ids=trace_ids,
        metrics=metrics,
        requested_at=draft.now,
        log_offset=draft.position.offset,
    )
    draft.outputs.append(request)


def _closed(draft: Draft) -> int:
    return len(draft.turns) - (draft.turns[-1].closed_at is None)


def _settle(draft: Draft) -> None:
    """Decide the oldest turns as far as they are ready."""
    while draft.turns and draft.turns[0].closed_at is not None and _settle_oldest(draft):
        pass


def _settle_oldest(draft: Draft) -> bool:
    """Bring the oldest turn one step on; returns whether it was decided."""
    turn = draft.turns[0]
    rules = draft.rules
    if turn.skip:
        _skip(draft, turn)
        return True
    if turn.tier == 1 and turn.given_up < 1 and ladder.lacks(turn, 1, rules):
        return False
    trajectory = ladder.fold_trajectory(turn, draft.gates, draft.paces, draft.task, rules)
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
    draft.paces = trajectory.paces
    _forget(draft, turn)
    reports.publish(
        draft,
        TRACE_LANE,
        turn_id_of(draft, turn.closing_trace),
        ladder.final_scores(turn, trajectory, draft.rules),
        trace_ids=tuple([trace.trace_id for trace in turn.traces]),
        flagged=_named(turn),
        gates=ladder.snapshots(before, draft.gates),
        turn_number=turn.number,
        turn_input=turn.input,
    )
    if draft.rules.session_metrics_each_turn and draft.rules.session_metrics:
        # Once: their scores hold up no turn, so nobody waits for an answer.
        _ask(draft, turn, 0, (), draft.rules.session_metrics)


def _named(turn: Turn) -> list[str]:
    """Return the traces that scores of the turn name, in the order in which a report shows the scores."""
    named: list[str] = []
    for trace in turn.traces:
        naming = [score for score in trace.scores if score.flagged_traces]
        for score in sorted(naming, key=lambda score: score.name) if len(naming) > 1 else naming:
            named += score.flagged_traces
    for score in turn.scores:
        named += score.flagged_traces
    return named


def _skip(draft: Draft, turn: Turn) -> None:
    """Leave a turn out, as a cost control asked when it closed."""
    _forget(draft, turn)
    turn_id = turn_id_of(draft, turn.closing_trace)
    draft.journal(JournalKind.SKIP, turn.skip, turn_id=turn_id)
    reports.settle(draft, TRACE_LANE, turn_id, Outcome.NONE, turn.skip)


def _forget(draft: Draft, turn: Turn) -> None:
    """Drop the oldest turn, remembering only which traces it held and how far in time it reached."""
    del draft.turns[0]
    if draft.turns or draft.pending or draft.runs:
        draft.held_bytes -= sum(map(weight, turn.traces)) + sum(map(weight, turn.scores))
    else:
        draft.held_bytes = 0
    hashes = [short_hash(trace.trace_id) for trace in turn.traces]
    draft.evaluated = (*draft.evaluated, *hashes)[-MAX_EVALUATED:]
    newest, known = turn.traces[-1].started_at, draft.newest_decided
    if known is None or newest > known:
        draft.newest_decided = newest
