"""The evaluation ladder: which tier a turn waits for, until when, and what its scores say once they are there."""

from collections.abc import Mapping
from typing import NamedTuple

from streams.core.gate import GateState
from streams.core.model import OUTCOME_METRIC, PENDING, Condition, GateSnapshot, ReportScore, Score
from streams.core.pace import Pace, PaceState
from streams.core.rules import Rules
from streams.core.scores import find
from streams.core.state import Turn, TurnTrace

NOT_STARTED = GateState()
READY = 0
"""What `due_tier` answers when the turn waits for nothing more."""


class Trajectory(NamedTuple):
    """What the gate made of a turn's tier-1 scores, and pace beside it."""

    scores: tuple[ReportScore, ...]
    gates: Mapping[str, GateState]
    paces: Mapping[str, PaceState]
    fired: bool
    """Whether the gate fired; pace only advises."""


def missing(turn: Turn, tier: int, rules: Rules) -> tuple[str, ...]:
    """Return the metrics of *tier* not resolved yet: on every trace for tier 1, on the last one above."""
    traces = turn.traces if tier == 1 else turn.traces[-1:]
    return tuple([metric for metric in rules.tier_metrics(tier) if _unresolved(traces, (metric,))])


def lacks(turn: Turn, tier: int, rules: Rules) -> bool:
    """Whether any metric of *tier* is `missing`."""
    return _unresolved(turn.traces if tier == 1 else turn.traces[-1:], rules.tier_metrics(tier))


def _unresolved(traces: tuple[TurnTrace, ...], metrics: tuple[str, ...]) -> bool:
    """Whether any of the traces has yet to get one of the metrics."""
    for trace in traces:
        for metric in metrics:
            score = find(trace.scores, metric)
            if score is None or score.status is PENDING:
                return True
    return False


def fold_trajectory(
    turn: Turn, gates: Mapping[str, GateState], paces: Mapping[str, PaceState], task: str | None, rules: Rules
) -> Trajectory:
    """Fold the turn's tier-1 values into the gates, and into pace where it is on, oldest trace first."""
    gate = rules.gate
    after = dict(gates)
    keeping = dict(paces) if rules.pace else {}
    shown: list[ReportScore] = []
    fired_any = False
    for trace in turn.traces:
        for metric in rules.tier1_metrics:
            score = find(trace.scores, metric)
            if score is None or (value := score.value) is None:
                shown.append(report_score(rules, metric, 1, trace.trace_id, score))
                continue
            before = after.get(metric) or gate.start()
            state, fired = gate.step(before, value)
            after[metric] = state
            since = state.traces_since_gain
            if fired:
                fired_any = True
                since = before.traces_since_gain + 1
            line = None
            if rules.pace and (pace := rules.pace_for(metric, task)) is not None:
                keeping[metric], behind = _keep_pace(pace, keeping.get(metric), before, value)
                line = pace.line(state.seen)
                fired = (*fired, Condition.PACE) if behind else fired
            shown.append(report_score(rules, metric, 1, trace.trace_id, score, fired, state.peak, since, line))
    return Trajectory(tuple(shown), after, keeping, fired_any)


def _keep_pace(pace: Pace, state: PaceState | None, gate: GateState, value: float) -> tuple[PaceState, bool]:
    """Step; where pace was switched on in mid-session, from what the gate has seen (its peak is at most a gain lower)."""
    if state is None or state.seen != gate.seen:
        state = PaceState(gate.peak, 0, gate.seen)
    return pace.step(state, value)


def climbs(trajectory: Trajectory, rules: Rules) -> bool:
    """Whether tier 2 is due: the gate fired, or the rules always ask."""
    return trajectory.fired or rules.tier2_always


def explains(turn: Turn, rules: Rules) -> bool:
    """Whether tier 3 is due, given that tier 2 was: a tier-2 score breached."""
    return rules.enable_tier3 and any(score.conditions for score in _upper(turn, 2, rules, judged=True))


def due_tier(turn: Turn, trajectory: Trajectory, rules: Rules) -> int:
    """Return the tier above 1 that the turn still has to wait for, or READY."""
    if not climbs(trajectory, rules):
        return READY
    if turn.tier <= 2 and turn.given_up < 2 and lacks(turn, 2, rules):
        return 2
    if explains(turn, rules) and turn.given_up < 3 and lacks(turn, 3, rules):
        return 3
    return READY


def deadline(turn: Turn, rules: Rules) -> int | None:
    """Return when the turn's present wait runs out, or none for an open turn and one that waits only for its elders."""
    if turn.closed_at is None or turn.skip or turn.given_up >= turn.tier:
        return None
    if rules.request_evals and turn.attempt:
        wait = rules.ms.eval_deadline
        if turn.attempt < rules.eval_retry_attempts:
            wait += rules.ms.eval_retry_backoff * turn.attempt
        return turn.tier_since + wait
    if turn.scored_at is None and turn.tier == 1:
        return turn.closed_at + rules.ms.first_score_wait
    return max(turn.closed_at, turn.scored_at or 0, turn.tier_since) + rules.ms.score_wait


def final_scores(turn: Turn, trajectory: Trajectory, rules: Rules) -> tuple[ReportScore, ...]:
    """Return every score of the turn as its report shows it: tiers 1, 2, 3, 0, then the metrics no tier names."""
    judged = climbs(trajectory, rules)
    if not judged and _only_tier1(turn, rules):
        return trajectory.scores
    upper = _upper(turn, 2, rules, judged=judged)
    explained = judged and explains(turn, rules)
    return (
        *trajectory.scores,
        *upper,
        *_upper(turn, 3, rules, judged=explained),
        *_outcomes(turn, rules),
        *_others(turn, rules),
    )


def _only_tier1(turn: Turn, rules: Rules) -> bool:
    """Whether the turn has no other scores, as most turns: nothing is left to look for then."""
    if turn.scores:
        return False
    for trace in turn.traces:
        for score in trace.scores:
            if rules.tiers.get(score.name) != 1:
                return False
    return True


def snapshots(before: Mapping[str, GateState], after: Mapping[str, GateState]) -> tuple[GateSnapshot, ...]:
    """Return each metric's gate before and after, for the metrics that moved."""
    moved = []
    for metric, new in after.items():
        old = before.get(metric, NOT_STARTED)
        if old is not new:
            peak = old.peak if old.seen else None
            moved.append(GateSnapshot(metric, peak, old.traces_since_gain, new.peak, new.traces_since_gain))
    return tuple(moved)


def report_score(
    rules: Rules,
    metric: str,
    tier: int | None,
    trace_id: str | None,
    score: Score | None,
    conditions: tuple[Condition, ...] = (),
    peak: float | None = None,
    since: int | None = None,
    pace_line: float | None = None,
) -> ReportScore:
    """Return *score*, or its absence, as a report shows it."""
    if score is None:
        line = rules.threshold(metric, None)
        return ReportScore(metric, tier, trace_id, None, PENDING, line)
    line = rules.threshold(metric, score.threshold)
    # This runs for every score: to call the class takes twice as long.
    value, status, reason = score.value, score.status, score.reason
    fields = metric, tier, trace_id, value, status, line, conditions, reason, peak, since, None, pace_line
    return tuple.__new__(ReportScore, fields)


def judge(rules: Rules, score: Score, tier: int | None, trace_id: str | None, *, judged: bool) -> ReportScore:
    """Return *score* with `breach` when it may breach on its value and lies below its threshold."""
    line = rules.threshold(score.name, score.threshold)
    breached = judged and score.value is not None and score.value < line
    return report_score(rules, score.name, tier, trace_id, score, (Condition.BREACH,) if breached else ())


def _upper(turn: Turn, tier: int, rules: Rules, *, judged: bool) -> tuple[ReportScore, ...]:
    """Tier 2 or 3 of the last trace; what was due and is missing shows as pending. Tier 3 never breaches."""
    last = turn.traces[-1]
    shown = []
    for metric in rules.tier_metrics(tier):
        score = find(last.scores, metric)
        if score is not None:
            shown.append(judge(rules, score, tier, last.trace_id, judged=judged and tier == 2))
        elif judged:
            shown.append(report_score(rules, metric, tier, last.trace_id, None))
    return tuple(shown)


def _outcomes(turn: Turn, rules: Rules) -> list[ReportScore]:
    found: list[tuple[str | None, Score | None]] = [
        (trace.trace_id, find(trace.scores, OUTCOME_METRIC)) for trace in turn.traces
    ]
    found.append((None, find(turn.scores, OUTCOME_METRIC)))
    return [judge(rules, score, 0, trace_id, judged=True) for trace_id, score in found if score is not None]


def _others(turn: Turn, rules: Rules) -> list[ReportScore]:
    """Scores that no tier asked for, and those of tiers 2 and 3 that are not on the last trace: shown, never judged."""
    last = turn.traces[-1].trace_id
    return [
        judge(rules, score, tier, trace.trace_id, judged=False)
        for trace in turn.traces
        for score in sorted(trace.scores, key=lambda score: score.name)
        if (tier := rules.tiers.get(score.name)) is None or (tier >= 2 and trace.trace_id != last)
    ]
