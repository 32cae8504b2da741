"""One assigned partition while it is read: what is at hand, what is out, what is settled."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from aiokafka import ConsumerRecord

from streams.engine.batch import Batch
from streams.engine.pace import Head
from streams.engine.partition import TP
from streams.engine.slices import Slices

if TYPE_CHECKING:
    from streams.engine.state import PartitionState


_STUCK_AFTER = 5


async def _no_id(_: TP) -> str:
    """Know no topic ids: the lane has a table, whose changelog says where it stands."""
    return ""


@dataclass(frozen=True)
class Reading:
    """How a topic is read.

    contiguous: the topic has no legal gaps in its offsets (one of our own logs, written
        without transactions); a gap then means that the client lost records.
    by_time: take turns with the other such partitions by record time.
    max_records: the most records in one batch.
    rank: of stages that wait for the processor, the one with the highest goes first: give the higher one to the
        later stage, so that what has been begun is finished before more is.
    """

    contiguous: bool = False
    by_time: bool = False
    max_records: int = 2_000
    rank: int = 0


class Lane:
    """Belongs to the consumer's thread, but for what is named here.

    settled: every record before it is done; the stage's side moves it while a batch is out or not stored yet,
        the consumer's side only while there is none such. What may be committed.
    published: every output for the records before it is acknowledged; where it is ahead of settled, a state
        that covers them is not stored yet.
    committed: the last offset that was committed, kept by the stage's side.
    closed: set by the stage's side when the partition goes away; nothing moves after that.
    slices: how its batches share the processor with the others; those of the worker once it is open.
    topic_id: the topic's, from before the first read; ask_topic_id: asks for it now.
    not_before: when a batch that failed is handed out again; not_read_before: the same of a read.
    recording: a gap that is being written down; nothing is read meanwhile.
    singly: whether records are read one by one, to come upon one that cannot be decoded.
    unreadable_from: the first such one, while the next readable one is looked for.
    """

    def __init__(self, tp: TP, reading: Reading, start: int, state: "PartitionState | None" = None) -> None:
        self.tp = tp
        self.key = TP(tp.topic, tp.partition)
        self.reading = reading
        self.state = state
        self.slices = Slices()
        self.topic_id = ""
        self.ask_topic_id: Callable[[TP], Awaitable[str]] = _no_id
        self.settled = start
        self.published = start
        self.committed = -1
        self.closed = False
        self.position = start
        self.busy = False
        self.not_before = 0.0
        self.not_read_before = 0.0
        self.recording: asyncio.Future[None] | None = None
        self.singly = False
        self.unreadable_from: int | None = None
        self.failures = 0
        self.hole_seen = 0
        self.end: int | None = None
        self.beyond_end_since: float | None = None
        self.empty_since: float | None = None
        self.last_ms: int | None = None
        self._buffer: deque[ConsumerRecord] = deque()
        self._bytes = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the stage keeps failing on the next batch; the others then do not wait for it."""
        return self.failures >= _STUCK_AFTER

    def has_room(self, max_bytes: int) -> bool:
        """Return whether more may be read from the client's own buffer."""
        return len(self._buffer) < self.reading.max_records and self._bytes < max_bytes

    def accept(self, records: Iterable[ConsumerRecord], position: int) -> None:
        """Take what was read; position is where the next read goes on."""
        for record in records:
            self._buffer.append(record)
            self._bytes += len(record.value or b"") + len(record.key or b"")
        self.position = position
        # Transaction markers and compacted records move the position without a record.
        if not self.busy:
            self._pass_by()

    def take(self, now: float, limit_ms: int | None) -> Batch | None:
        """Hand out the next batch of records not later than limit_ms, if there is one."""
        if self.busy or not self._buffer or now < self.not_before:
            return None
        ready: Iterable[ConsumerRecord] = islice(self._buffer, self.reading.max_records)
        if limit_ms is not None:
            ready = takewhile(lambda record: record.timestamp <= limit_ms, ready)
        records = list(ready)
        if not records:
            return None
        for record in records:
            self._buffer.popleft()
            self._bytes -= len(record.value or b"") + len(record.key or b"")
        self.busy = True
        self.last_ms = records[-1].timestamp
        self.empty_since = None
        after = self._buffer[0].offset if self._buffer else self.position
        return Batch(self, records, after)

    def settle(self) -> None:
        """The batch that was out came back done."""
        self.busy = False
        self.failures = 0
        self._pass_by()

    def _pass_by(self) -> None:
        """Settle what holds no record, when nothing before it is at hand or to be stored."""
        if not self._buffer and self.published <= self.settled:
            self.settled = self.position

    def restart(self, position: int) -> None:
        """Forget what is at hand; the next read is at this position."""
        self._buffer.clear()
        self._bytes = 0
        self.position = position
        self.published = min(self.published, position)
        self.unreadable_from = None

    def head(self, now: float) -> Head:
        """Describe how far the partition has been read, for the order by time."""
        if self._buffer:
            return Head(self._buffer[0].timestamp, self.last_ms, behind=True, waited_s=0.0)
        if self.empty_since is None:
            self.empty_since = now
        behind = self.end is None or self.position < self.end
        return Head(None, self.last_ms, behind=behind, waited_s=now - self.empty_since)
