"""The catalog stage: keeps each trace whole, its updates merged, and the order of each session's traces."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from aiokafka import ConsumerRecord

from streams import tables
from streams.agents.metering import Meter
from streams.agents.outbox import EvalOutput, Outbox
from streams.agents.stage import FoldStage
from streams.core.eval_states import StagePosition
from streams.core.ids import digest
from streams.core.model import JournalEntry, JournalKind, StepFailed
from streams.core.whole_traces import merged
from streams.engine import PartitionState, Publisher
from streams.evaluators.evaluation import HISTORY, Subject
from streams.evaluators.moves import Moves
from streams.wire import (
    Wire,
    decode_kept_trace,
    decode_state,
    encode_kept_trace,
    encode_state,
    kept_trace_times,
)

Whole = dict[str, Any]
MAX_FORGOTTEN: Final = 1_000
"""Traces that one batch forgets, so that none takes long after a pause."""


class CatalogRecord(NamedTuple):
    """A record of the traces topic."""

    offset: int
    time: int
    whole: Whole


class Catalog:
    """The fold of one partition of the traces topic."""

    def __init__(
        self,
        partition: int,
        place: StagePosition,
        load: Callable[[bytes], bytes | None],
        retention_ms: int,
        max_bytes: int,
    ) -> None:
        self.partition = partition
        self.position = place.position
        self.now = place.now
        self._load = load
        self._retention_ms = retention_ms
        self._max_bytes = max_bytes
        self._touched: dict[bytes, bytes | None] = {}
        self._written: dict[bytes, bytes | None] = {}
        """What the last flush handed over: the store may not have it yet."""
        self._orders: dict[str, list[tuple[int, str]]] = {}
        self._kept: dict[tuple[str, str], tuple[int, int]] = {}
        """(session, trace) -> (ingested_at, started_at), oldest first."""

    def restore(self, stored: Iterable[tuple[bytes, bytes]]) -> None:
        """Rebuild the orders from what the table holds."""
        found = []
        for key, value in stored:
            session_id, _, trace_id = (
                key.removeprefix(tables.TRACE_PREFIX).decode("utf-8", "surrogatepass").partition("\0")
            )
            found.append((*kept_trace_times(value), session_id, trace_id))
        for ingested_at, started_at, session_id, trace_id in sorted(found):
            self._index(session_id, trace_id, ingested_at, started_at)

    def apply(self, record: CatalogRecord) -> tuple[JournalEntry, ...]:
        """Merge one trace into what is known of it."""
        self.position = record.offset + 1
        self.now = max(self.now, record.time)
        update = record.whole
        session_id, trace_id = update["session_id"], update["trace_id"]
        known = self.find(session_id, trace_id)
        whole = merged(known, update)
        value = encode_kept_trace(whole, record.time)
        said: tuple[JournalEntry, ...] = ()
        if known is not None and len(value) > self._max_bytes:
            whole, said = update, (self._too_large(record, update),)
            value = encode_kept_trace(whole, record.time)
        self._touched[tables.trace_key(session_id, trace_id)] = value
        self._index(session_id, trace_id, record.time, whole["started_at"])
        return said

    def flush(self) -> dict[bytes, bytes | None]:
        """Return what changed since the last call: a value for each key, none for what is too old to be kept."""
        horizon = self.now - self._retention_ms
        for (session_id, trace_id), (ingested_at, _) in list(self._oldest()):
            if ingested_at >= horizon:
                break
            self._forget(session_id, trace_id)
        self._written, self._touched = self._touched, {}
        return self._written

    def find(self, session_id: str, trace_id: str) -> Whole | None:
        """Return a whole trace, none where it is not known (any more)."""
        if (session_id, trace_id) not in self._kept:
            return None
        key = tables.trace_key(session_id, trace_id)
        for changes in (self._touched, self._written):
            if key in changes:
                stored = changes[key]
                break
        else:
            stored = self._load(key)
        return None if stored is None else decode_kept_trace(stored)

    def subject(self, session_id: str, trace_id: str) -> Subject | None:
        """Return a trace with the ones before it in its session, none where it is not known."""
        whole = self.find(session_id, trace_id)
        if whole is None:
            return None
        order = self._orders[session_id]
        at = bisect_left(order, (whole["started_at"], trace_id))
        earlier = (self.find(session_id, name) for _, name in order[max(0, at - HISTORY) : at])
        return Subject(whole, [found for found in earlier if found is not None])

    def _oldest(self) -> Iterable[tuple[tuple[str, str], tuple[int, int]]]:
        for _, item in zip(range(MAX_FORGOTTEN), self._kept.items(), strict=False):
            yield item

    def _index(self, session_id: str, trace_id: str, ingested_at: int, started_at: int) -> None:
        order = self._orders.setdefault(session_id, [])
        if (known := self._kept.pop((session_id, trace_id), None)) is not None:
            del order[bisect_left(order, (known[1], trace_id))]
        insort(order, (started_at, trace_id))
        self._kept[session_id, trace_id] = ingested_at, started_at

    def _forget(self, session_id: str, trace_id: str) -> None:
        _, started_at = self._kept.pop((session_id, trace_id))
        order = self._orders[session_id]
        del order[bisect_left(order, (started_at, trace_id))]
        if not order:
            del self._orders[session_id]
        self._touched[tables.trace_key(session_id, trace_id)] = None

    def _too_large(self, record: CatalogRecord, update: Whole) -> JournalEntry:
        return JournalEntry(
            journal_id=digest("whole_trace", self.partition, record.offset),
            kind=JournalKind.OVERFLOW,
            reason="whole_trace",
            session_id=update["session_id"],
            project=update["project"],
            turn_id=None,
            trace_id=update["trace_id"],
            metric=None,
            detail=f"its updates together take more than {self._max_bytes} bytes: evaluators see the last one alone",
            time=record.time,
        )


class CatalogStage(FoldStage[Catalog, CatalogRecord]):
    """Owns the catalogs of the assigned partitions."""

    def __init__(
        self, publisher: Publisher, outbox: Outbox, wire: Wire, meter: Meter, retention_ms: int, max_bytes: int
    ) -> None:
        super().__init__(publisher, outbox, meter)
        self._wire = wire
        self._retention_ms = retention_ms
        self._max_bytes = max_bytes
        self.moves = Moves()

    def take_up(self, partition: int, state: PartitionState) -> Catalog:
        stored = state.get(tables.position_key(partition))
        place = StagePosition() if stored is None else decode_state(StagePosition, stored)
        catalog = Catalog(partition, place, state.get, self._retention_ms, self._max_bytes)
        catalog.restore(state.items(tables.TRACE_PREFIX))
        return catalog

    def read(self, record: ConsumerRecord) -> CatalogRecord:
        whole = self._wire.read_trace(record.value, record.key, record.timestamp).whole
        return CatalogRecord(record.offset, record.timestamp, whole)

    def apply(self, fold: Catalog, read: CatalogRecord) -> tuple[EvalOutput | StepFailed, ...]:
        return fold.apply(read)

    def remember(self, fold: Catalog, partition: int) -> tables.Changes:
        changes = fold.flush()
        place = encode_state(StagePosition(fold.position, fold.now))
        kept = {key: value for key, value in changes.items() if value is not None}
        forgotten = dict.fromkeys(changes.keys() - kept.keys())
        self.moves.tell()
        return {**kept, tables.position_key(partition): place, **forgotten}
