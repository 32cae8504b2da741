"""What is known of one session: its stored state, the rules in force, its recent reports and how they landed."""

import asyncio
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from streams import reading, tables
from streams.core import ladder
from streams.core.log import PartitionState
from streams.core.model import OUTCOME_METRIC, Lane, Report, TraceStatus, TurnSettled
from streams.core.rules import Rules, seconds
from streams.core.state import PendingTrace, SessionState, Turn
from streams.reading import Kind, Place, R
from streams.settings import Settings
from streams.topics import SESSION_STATES, TURN_REPORTS, TURN_SETTLED
from streams.wire import Wire

KEPT: Final = 200
"""Reports and outcomes kept."""
_ENDED: Final = (TraceStatus.COMPLETED, TraceStatus.ERROR)


@dataclass(frozen=True)
class Wait:
    """Something of the session that is not decided yet.

    turn: its number, 0 while it is open, none for a trace that has not joined one.
    tier, missing: the scores it waits for; no tier where it waits for something else.
    reason: what it waits for, as one word: scores, elders, end_of_turn, announcement, completion; or not_evaluated,
        of a trace that has ended with a status that the rules do not evaluate.
    until: when the wait runs out, in milliseconds; none when only an event ends it.
    status: of a trace that was announced and has not joined a turn.
    """

    turn: int | None
    trace_ids: tuple[str, ...]
    tier: int | None
    missing: tuple[str, ...]
    reason: str
    until: int | None
    status: TraceStatus | None = None


@dataclass(frozen=True)
class History:
    """A session as it stands; state is none when nothing is stored, or no more."""

    session_id: str
    state: SessionState | None
    rules: Rules
    reports: tuple[Report, ...]
    """The newest ones, oldest first; enough for a picture of the series."""
    settled: dict[tuple[Lane, str], TurnSettled]
    """Lane and turn id -> how it landed."""

    @property
    def waits(self) -> tuple[Wait, ...]:
        """What is not decided yet, in the order in which it will be."""
        if self.state is None:
            return ()
        turns = tuple(_turn_wait(turn, self.rules, first=at == 0) for at, turn in enumerate(self.state.turns))
        return turns + tuple(_trace_wait(item, self.rules) for item in self.state.pending)

    @property
    def unwatched(self) -> tuple[str, ...]:
        """Metrics of the scores of its traces that no tier of the rules names: they are shown and never judged."""
        named = [score.metric for report in self.reports if report.lane is Lane.TRACE for score in report.scores]
        if self.state is not None:
            turns = self.state.turns
            held = [item.scores for item in self.state.pending] + [turn.scores for turn in turns]
            held += [trace.scores for turn in turns for trace in turn.traces]
            named += [score.name for scores in held for score in scores]
        return tuple(dict.fromkeys(name for name in named if name not in {*self.rules.tiers, OUTCOME_METRIC}))


async def read_history(settings: Settings, session_id: str) -> History:
    """Read what the stages know of a session.

    Raises:
        TopicsWrong: a topic does not exist.
        KafkaError: no broker answers.
    """
    key = session_id.encode("utf-8", "surrogatepass")
    places = await reading.locate(settings, SESSION_STATES, TURN_REPORTS, TURN_SETTLED, key=key)
    state_place, report_place, settled_place = places
    wire = Wire.of(settings)
    (state, rules), reports, settled = await asyncio.gather(
        _state(state_place, session_id, settings.rules),
        _newest(report_place, reading.REPORT, wire, session_id, KEPT),
        _newest(settled_place, reading.SETTLED, wire, session_id, KEPT),
    )
    return History(session_id, state, rules, reports, {(item.lane, item.turn_id): item for item in settled})


async def _state(place: Place, session_id: str, otherwise: Rules) -> tuple[SessionState | None, Rules]:
    """Return the stored state and the rules its partition is under; before the first ones, those of our settings."""
    session_key, position_key = tables.state_key(session_id), tables.position_key(place.partitions[0])
    found = await reading.latest(place, {session_key, position_key}.__contains__)
    stored, position = found.get(session_key), found.get(position_key)
    rules = None if position is None else tables.decode_state(PartitionState, position).rules
    return None if stored is None else tables.decode_state(SessionState, stored), rules or otherwise


async def _newest(place: Place, kind: Kind[R], wire: Wire, session_id: str, last: int) -> tuple[R, ...]:
    kept: deque[R] = deque(maxlen=last)
    async with aclosing(reading.outputs(place, kind, wire)) as read:
        async for page in read:
            kept.extend(value for value in page.values if getattr(value, "session_id", None) == session_id)
    return tuple(kept)


def _turn_wait(turn: Turn, rules: Rules, *, first: bool) -> Wait:
    traces = tuple(trace.trace_id for trace in turn.traces)
    if turn.closed_at is None:
        return Wait(0, traces, None, (), "end_of_turn", turn.joined_at + seconds(rules.turn_idle_s))
    missing = ladder.missing(turn, turn.tier, rules) if turn.given_up < turn.tier else ()
    if missing and not turn.skip:
        return Wait(turn.number, traces, turn.tier, missing, "scores", ladder.deadline(turn, rules))
    return Wait(turn.number, traces, None, (), "decision" if first else "elders", None)


def _trace_wait(item: PendingTrace, rules: Rules) -> Wait:
    if item.trace is None:
        return Wait(None, (item.trace_id,), None, (), "announcement", item.since + seconds(rules.unannounced_wait_s))
    status = item.trace.status
    reason = "not_evaluated" if status in _ENDED else "completion"
    return Wait(None, (item.trace_id,), None, (), reason, None, status)
