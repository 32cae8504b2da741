"""The signals stage: hears the session log for what session metrics are computed from."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from aiokafka import ConsumerRecord

from streams import tables
from streams.agents.metering import Meter
from streams.agents.outbox import EvalOutput, Outbox
from streams.agents.stage import FoldStage
from streams.core.eval_states import StagePosition, TraceSignals
from streams.core.log import LogRecord, is_repeat
from streams.core.model import Score, StepFailed
from streams.core.trace_signals import counting, heard
from streams.engine import PartitionState, Publisher
from streams.errors import InvalidRecord
from streams.evaluators.metrics import METRICS
from streams.evaluators.moves import Moves
from streams.evaluators.session_signals import SessionSignals
from streams.wire import Wire, decode_state, encode_state

SIGNALS: Final = frozenset(metric.name for metric in METRICS.values() if metric.signal)
MAX_SORTED: Final = 4_096
"""Sessions whose signals are kept sorted; those asked for longest ago are sorted anew when asked for again."""


class HeardSignals:
    """The fold of one partition of the session log, as far as it is about signals."""

    def __init__(self, place: StagePosition, load: Callable[[bytes], bytes | None], ttl_ms: int) -> None:
        self.position = place.position
        self.now = place.now
        self._sources = dict(place.sources)
        self._load = load
        self._ttl_ms = ttl_ms
        self._touched: dict[bytes, TraceSignals] = {}
        self._written: dict[bytes, TraceSignals] = {}
        """What the last flush handed over: the store may not have it yet."""
        self._traces: dict[str, dict[str, None]] = {}
        """Session -> its traces with signals, in order."""
        self._active: dict[str, int] = {}
        """Session -> when its last signal came, longest ago first."""
        self._sorted: OrderedDict[str, SessionSignals] = OrderedDict()

    @property
    def place(self) -> StagePosition:
        return StagePosition(self.position, self.now, dict(self._sources))

    def restore(self, states: Iterable[TraceSignals]) -> None:
        """Rebuild the indexes from what the table holds."""
        last: dict[str, int] = {}
        for state in sorted(states, key=lambda item: item.place):
            self._traces.setdefault(state.session_id, {})[state.trace_id] = None
            last[state.session_id] = max(state.changed_at, last.get(state.session_id, 0))
        self._active = dict(sorted(last.items(), key=lambda item: item[1]))

    def apply(self, record: LogRecord) -> None:
        """Hear one record; what is no new score of a signal changes nothing but the position."""
        self.position = record.offset + 1
        self.now = max(self.now, record.time)
        if is_repeat(record.source, self._sources):
            return
        score = record.body
        if isinstance(score, Score) and score.name in SIGNALS and record.session_id is not None:
            self._hear(record.session_id, score, record.offset)

    def flush(self) -> tuple[dict[bytes, TraceSignals], list[bytes]]:
        """Return the states touched since the last call, and the keys of those whose session has been idle too long."""
        forgotten: list[bytes] = []
        for session_id, last in list(self._active.items()):
            if last >= self.now - self._ttl_ms:
                break
            del self._active[session_id]
            self._sorted.pop(session_id, None)
            forgotten += [tables.trace_key(session_id, trace_id) for trace_id in self._traces.pop(session_id)]
        for key in forgotten:
            self._touched.pop(key, None)
        self._written, self._touched = self._touched, {}
        return self._written, forgotten

    def session(self, session_id: str) -> SessionSignals:
        """Return a session's signals, weighed as usual and sorted."""
        found = self._sorted.get(session_id)
        if found is None:
            found = SessionSignals()
            for trace_id in self._traces.get(session_id, ()):
                found.put(trace_id, self._counting(session_id, trace_id))
            self._sorted[session_id] = found
            if len(self._sorted) > MAX_SORTED:
                self._sorted.popitem(last=False)
        self._sorted.move_to_end(session_id)
        return found

    def traces(self, session_id: str) -> dict[str, Mapping[str, float]]:
        """Return the signals of all traces of a session, in order."""
        return {trace_id: self._counting(session_id, trace_id) for trace_id in self._traces.get(session_id, ())}

    def _hear(self, session_id: str, score: Score, offset: int) -> None:
        key = tables.trace_key(session_id, score.trace_id or "")
        state = heard(self._get(session_id, key), session_id, score, offset, self.now)
        if state is None:
            return
        self._touched[key] = state
        self._traces.setdefault(session_id, {})[state.trace_id] = None
        self._active.pop(session_id, None)
        self._active[session_id] = self.now
        if (kept := self._sorted.get(session_id)) is not None:
            kept.put(state.trace_id, counting(state))

    def _counting(self, session_id: str, trace_id: str) -> Mapping[str, float]:
        state = self._get(session_id, tables.trace_key(session_id, trace_id))
        return counting(state) if state else {}

    def _get(self, session_id: str, key: bytes) -> TraceSignals | None:
        if session_id not in self._traces:
            return None
        if (state := self._touched.get(key) or self._written.get(key)) is not None:
            return state
        stored = self._load(key)
        return None if stored is None else decode_state(TraceSignals, stored)


class SignalStage(FoldStage[HeardSignals, LogRecord | int]):
    """Owns what was heard of the assigned partitions' sessions."""

    def __init__(self, publisher: Publisher, outbox: Outbox, wire: Wire, meter: Meter, ttl_ms: int) -> None:
        super().__init__(publisher, outbox, meter)
        self._wire = wire
        self._ttl_ms = ttl_ms
        self.moves = Moves()

    def take_up(self, partition: int, state: PartitionState) -> HeardSignals:
        stored = state.get(tables.position_key(partition))
        place = StagePosition() if stored is None else decode_state(StagePosition, stored)
        fold = HeardSignals(place, state.get, self._ttl_ms)
        fold.restore(decode_state(TraceSignals, value) for _, value in state.items(tables.TRACE_PREFIX))
        return fold

    def read(self, record: ConsumerRecord) -> LogRecord | int:
        try:
            return self._wire.read_log_record(record.value, record.offset, record.timestamp)
        except InvalidRecord:
            # The session stage puts it into the dead letters.
            return int(record.offset)

    def apply(self, fold: HeardSignals, read: LogRecord | int) -> tuple[EvalOutput | StepFailed, ...]:
        if isinstance(read, LogRecord):
            fold.apply(read)
        else:
            fold.position = read + 1
        return ()

    def remember(self, fold: HeardSignals, partition: int) -> tables.Changes:
        touched, forgotten = fold.flush()
        written: tables.Changes = {key: encode_state(state) for key, state in touched.items()}
        written[tables.position_key(partition)] = encode_state(fold.place)
        written.update(dict.fromkeys(forgotten))
        self.moves.tell()
        return written
