"""One step of one session: `step(state, event, rules) -> (state, outputs)`, everything else put together."""

from dataclasses import dataclass
from typing import NamedTuple

from streams.core import session_lane, traces, turns
from streams.core.model import OUTCOME_METRIC, JournalKind, Position, Score, SessionOutput, Trace
from streams.core.rules import Rules
from streams.core.state import Draft, SessionState


@dataclass(frozen=True, slots=True)
class Tick:
    """The owner of the log partition vouches that everything that had come by `as_of` has been applied."""

    as_of: int
    stuck_inputs: tuple[str, ...] = ()
    """Input partitions left out because their backlog does not move."""


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """Other rules are in force from this record on."""


class SessionEvent(NamedTuple):
    """What happened to a session: at which place of the log, and at which time of the fold."""

    session_id: str
    now: int
    position: Position
    body: Trace | Score | Tick | RulesChanged


def step(
    state: SessionState | None, event: SessionEvent, rules: Rules
) -> tuple[SessionState, tuple[SessionOutput, ...]]:
    """Fold one event into a session; none is the state of a session never seen."""
    draft = Draft(state or SessionState(event.session_id), rules, event.now, event.position)
    body = event.body
    if isinstance(body, Score):
        _score(draft, body)
    elif isinstance(body, Trace):
        traces.trace_seen(draft, body)
    elif isinstance(body, Tick):
        traces.expire_waits(draft, body.as_of)
        turns.expire_waits(draft, body.as_of)
        session_lane.expire_waits(draft, body.as_of)
    else:
        session_lane.advance(draft)
    turns.advance(draft)
    return draft.finish(), tuple(draft.outputs) if draft.outputs else ()


def next_due(state: SessionState, rules: Rules) -> int | None:
    """Return when the session's next wait runs out, in milliseconds, or none when it waits for nothing."""
    due = turns.next_due(state.turns, rules) if state.turns else None
    if state.pending:
        due = _sooner(due, traces.next_due(state.pending, rules))
    if state.runs:
        due = _sooner(due, session_lane.next_due(state.runs, rules))
    return due


def _sooner(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def _score(draft: Draft, score: Score) -> None:
    if score.name in draft.rules.session_lane:
        session_lane.score_seen(draft, score)
    elif score.trace_id is not None:
        traces.score_seen(draft, score)
    elif score.name == OUTCOME_METRIC:
        traces.turn_score_seen(draft, score)
    else:
        draft.journal(JournalKind.UNPLACED, "trace_metric_without_trace_id", metric=score.name)
