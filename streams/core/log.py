"""The fold of one session-log partition: which record touches which sessions, what time it is, what is a repeat."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from streams.core import session
from streams.core.ids import digest
from streams.core.model import JournalEntry, JournalKind, Position, Score, SessionOutput, StepFailed, Trace
from streams.core.rules import Rules
from streams.core.session import RulesChanged, SessionEvent, Tick
from streams.core.state import SessionState


class Source(NamedTuple):
    """Where a log record was read from; the topic id tells a re-created topic from its predecessor."""

    topic: str
    topic_id: str
    partition: int
    offset: int


class LogRecord(NamedTuple):
    """One record of the session log."""

    offset: int
    time: int
    body: Trace | Score | Tick | Rules | SessionState
    """A state is a session carried over from another log, as that log left it."""
    session_id: str | None = None
    source: Source | None = None


@dataclass(frozen=True)
class PartitionState:
    """Where the fold of one partition stands."""

    position: int = 0
    """The next offset to read."""
    now: int = 0
    """The largest record time seen."""
    rules: Rules | None = None
    sources: Mapping[tuple[str, str, int], int] = field(default_factory=dict)
    """(topic, topic id, partition) of an input -> last offset applied."""
    metrics_since: Mapping[str, int] = field(default_factory=dict)
    """`gate:` or `session:` metric -> offset of the rules record since which it has had that role without a break."""
    forgotten_before: int = 0
    """Sessions idle since before this time expired under earlier rules, and stay so."""


MAX_RECENT: Final = 1024
"""States kept beside the store's, a partition."""

Sources = dict[tuple[str, str, int], int]
"""(topic, topic id, partition) of an input -> last offset applied."""

Stepped = tuple[str | None, tuple[SessionOutput, ...]]
"""A session, or none for the partition itself, with the outputs of its step."""


def is_repeat(source: Source | None, applied: Sources) -> bool:
    """Whether the input record has been applied before; if not, *applied* holds from now on that it has."""
    if source is None:
        return False
    topic, topic_id, partition, offset = source
    known = (topic, topic_id, partition)
    if offset <= applied.get(known, -1):
        return True
    applied[known] = offset
    return False


class LogFold:
    """Folds a partition's records in order; `load` finds the stored state of a session.

    What it changed is in `touched` until `flush` hands it over for storing.
    """

    def __init__(
        self,
        partition: int,
        state: PartitionState,
        load: Callable[[str], SessionState | None],
        topic: str = "session-log",
    ) -> None:
        self.partition = partition
        self.topic = topic
        self.position = state.position
        self.now = state.now
        self.rules = state.rules
        self._sources = dict(state.sources)
        self._metrics_since = state.metrics_since
        self._forgotten_before = state.forgotten_before
        # Of a session's records after this one, none left it with a metric that has lost its role.
        self._cleared_since = state.position - 1
        self._load = load
        self._waits: list[tuple[int, str]] = []
        self._due: dict[str, int] = {}
        self._active: dict[str, int] = {}
        self.touched: dict[str, SessionState] = {}
        self._recent: dict[str, SessionState] = {}

    @property
    def state(self) -> PartitionState:
        """Where the fold stands now."""
        sources, since = dict(self._sources), self._metrics_since
        return PartitionState(self.position, self.now, self.rules, sources, since, self._forgotten_before)

    def restore(self, states: Iterable[SessionState]) -> None:
        """Rebuild the indexes of waits and of activity from stored states."""
        for state in sorted(states, key=lambda item: item.last_activity):
            self._index(state)

    @property
    def next_due(self) -> int | None:
        """When the next wait of any session runs out, in milliseconds."""
        while self._waits and self._due.get(self._waits[0][1]) != self._waits[0][0]:
            heapq.heappop(self._waits)
        return self._waits[0][0] if self._waits else None

    def apply(self, record: LogRecord) -> list[Stepped]:
        """Fold one record; returns (session id, outputs) in session_id order, none for the partition itself."""
        before = self.now
        if self._advance(record):
            return []
        match record.body:
            case Score() | Trace():
                assert record.session_id is not None
                return self._step(record, (record.session_id,), record.body)
            case Tick():
                return self._tick(record, record.body)
            case Rules():
                return self._switch(record, record.body, before)
            case SessionState():
                return self._carry(record, record.body)

    def flush(self) -> tuple[dict[str, SessionState], list[str]]:
        """Return the states touched since the last flush, and the sessions that have expired since."""
        touched, self.touched = self.touched, {}
        self._keep(touched)
        if not self.rules:
            return touched, []
        horizon = self._horizon(self.now)
        expired: list[str] = []
        for session_id, last_activity in self._active.items():
            if last_activity >= horizon:
                break
            expired.append(session_id)
        for session_id in expired:
            del self._active[session_id]
            self._due.pop(session_id, None)
            self._recent.pop(session_id, None)
        return touched, expired

    def _keep(self, flushed: Mapping[str, SessionState]) -> None:
        """Keep what was just handed over: most sessions come again soon, and loading one takes as long as its step."""
        self._recent.update(flushed)
        for session_id in list(islice(self._recent, max(0, len(self._recent) - MAX_RECENT))):
            del self._recent[session_id]

    def get(self, session_id: str) -> SessionState | None:
        """Return a session's state as the fold would find it now: nothing once it has expired."""
        state = self.touched.get(session_id) or self._recent.get(session_id) or self._load(session_id)
        if state is None or self.rules is None:
            return state
        if state.last_activity < self._horizon(self.now):
            return None
        return state if state.offset > self._cleared_since else self._without_removed_metrics(state)

    def _horizon(self, now: int) -> int:
        """Return the time before which a session must have been idle to have expired at *now*."""
        forgotten = self._forgotten_before
        if self.rules is None or (horizon := now - self.rules.ms.session_ttl) < forgotten:
            return forgotten
        return horizon

    def _advance(self, record: LogRecord) -> bool:
        """Take in what the record says of time and place; returns whether it repeats an input record already applied."""
        self.position = record.offset + 1
        self.now = max(self.now, record.time)
        return is_repeat(record.source, self._sources)

    def _step(
        self, record: LogRecord, session_ids: Iterable[str], body: Trace | Score | Tick | RulesChanged
    ) -> list[Stepped]:
        if self.rules is None:
            # The log has lost its start, and the state that stood for it is lost too: the rest must go on all the same.
            error = f"no rules record comes before it in {self.topic}-{self.partition}, which has lost its start"
            return [(session_id, (StepFailed(session_id, error),)) for session_id in session_ids]
        results: list[Stepped] = []
        position = Position(self.partition, record.offset, self.topic)
        for session_id in session_ids:
            state = self.get(session_id)
            if state is None and isinstance(body, Tick | RulesChanged):
                continue  # it expired while it waited
            outputs: tuple[SessionOutput, ...] = ()
            # A state may be ahead: stored before a crash, when the position record was not yet.
            if state is None or state.offset < record.offset:
                state, outputs = _try(state, SessionEvent(session_id, self.now, position, body), self.rules)
                self.touched[session_id] = state
            self._index(state)
            results.append((session_id, outputs))
        return results

    def _carry(self, record: LogRecord, state: SessionState) -> list[Stepped]:
        """Take up a session that another log knew; one that this log knows already has gone on since, and stays."""
        if self.get(state.session_id) is None:
            state = self.touched[state.session_id] = state._replace(offset=record.offset)
            self._index(state)
        return [(state.session_id, ())]

    def _tick(self, record: LogRecord, tick: Tick) -> list[Stepped]:
        results: list[Stepped] = []
        if tick.stuck_inputs:
            results.append((None, (self._stuck(record, tick),)))
        due: list[str] = []
        while (first := self.next_due) is not None and first <= tick.as_of:
            due.append(heapq.heappop(self._waits)[1])
            del self._due[due[-1]]
        return results + self._step(record, sorted(due), tick)

    def _switch(self, record: LogRecord, rules: Rules, before: int) -> list[Stepped]:
        """Put other rules in force; *before* is the time until which the old ones held."""
        if self.rules is not None and self.rules.hash == rules.hash:
            return []
        roles = [f"gate:{metric}" for metric in rules.tier1_metrics]
        roles += [f"session:{metric}" for metric in rules.session_lane]
        self._metrics_since = {role: self._metrics_since.get(role, record.offset) for role in sorted(roles)}
        self._forgotten_before = self._horizon(before)
        self._cleared_since = record.offset
        self.rules = rules
        return self._step(record, sorted(self._due), RulesChanged())

    def _without_removed_metrics(self, state: SessionState) -> SessionState:
        """Drop what belongs to metrics that have not had their role all the time since the session's last record."""
        since, last = self._metrics_since, state.offset
        gates = {name: gate for name, gate in state.gates.items() if since.get(f"gate:{name}", last + 1) <= last}
        held = {
            name: found for name, found in state.detectors.items() if since.get(f"session:{name}", last + 1) <= last
        }
        if len(gates) == len(state.gates) and len(held) == len(state.detectors):
            return state
        return state._replace(gates=gates, detectors=held)

    def _index(self, state: SessionState) -> None:
        session_id = state.session_id
        self._active.pop(session_id, None)
        self._active[session_id] = state.last_activity
        # Before the first rules record every session counts as due, so that the switch to them reaches it.
        due = 0 if self.rules is None else session.next_due(state, self.rules)
        if due is None:
            self._due.pop(session_id, None)
        elif self._due.get(session_id) != due:
            self._due[session_id] = due
            heapq.heappush(self._waits, (due, session_id))

    def _stuck(self, record: LogRecord, tick: Tick) -> JournalEntry:
        return JournalEntry(
            journal_id=digest(self.partition, record.offset, "", 0),
            kind=JournalKind.STUCK_INPUT,
            reason="backlog_does_not_move",
            session_id=None,
            project=None,
            turn_id=None,
            trace_id=None,
            metric=None,
            detail=", ".join(tick.stuck_inputs),
            time=self.now,
        )


def _try(
    state: SessionState | None, event: SessionEvent, rules: Rules
) -> tuple[SessionState, tuple[SessionOutput, ...]]:
    """Step; a step that raises leaves the session as it was but for a mark, each time the log is folded."""
    try:
        return session.step(state, event, rules)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the stream
        state = state or SessionState(event.session_id)
        marked = state._replace(
            failed_steps=state.failed_steps + 1, offset=event.position.offset, last_activity=event.now
        )
        return marked, (StepFailed(event.session_id, f"{type(error).__name__}: {error}"),)
