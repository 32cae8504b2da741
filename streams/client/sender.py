"""Sends records in the background: a bounded queue, batches in order, patience with a broker that is away."""

import asyncio
import logging
import threading
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from streams import admin
from streams.client.reach import Reach
from streams.client.records import Encoded
from streams.engine import AppendFailed, Out, Publisher, partition_for
from streams.errors import TopicsWrong
from streams.topics import EVAL_SCORES, TRACE_INGESTED, named

logger = logging.getLogger(__name__)

BATCH: Final = 500
BATCH_BYTES: Final = 4 * 1024 * 1024
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 5.0
STOP_S: Final = 5.0


class WhenFull(StrEnum):
    """What becomes of a record that finds the queue full."""

    DROP = "drop"
    """It is dropped and counted."""
    WAIT = "wait"
    """Who publishes waits for room; where nothing can wait, it is dropped and counted."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of everything that was handed over for publishing.

    sent: acknowledged by the broker. waiting: not yet. dropped: the queue was full.
    refused: not valid, or its redaction failed. withheld: the redaction kept it back.
    lost: still waiting when the gate was closed.
    trouble: why nothing goes out at present; none while it does.
    """

    sent: int = 0
    waiting: int = 0
    dropped: int = 0
    refused: int = 0
    withheld: int = 0
    lost: int = 0
    trouble: str | None = None


class Sender:
    """The queue and the task that empties it. `offer` may be called from any thread."""

    def __init__(self, reach: Reach, *, when_full: WhenFull, max_records: int, max_bytes: int) -> None:
        self._reach = reach
        self._when_full = when_full
        self._max_records, self._max_bytes = max_records, max_bytes
        self._topics = named(reach.settings.topic_names)
        self._lock = threading.Lock()
        self._queue: deque[Encoded] = deque()
        self._queued_bytes = 0
        self._taken = self._sent = self._dropped = self._lost = 0
        self._closed = False
        self.trouble: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake, self._room, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin sending on the running loop; returns at once, whether the broker is there or not."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run(), name="tgate-sender")

    def offer(self, record: Encoded) -> bool:
        """Queue a record, or drop and count it when there is no room; never waits. Returns whether it was queued."""
        with self._lock:
            if self._closed or not self._fits(record):
                self._dropped += 1
                return False
            self._add(record)
        self._signal(self._wake)
        return True

    async def submit(self, record: Encoded) -> bool:
        """Queue a record; with WhenFull.WAIT, once there is room. Returns whether it was queued."""
        while self._when_full is WhenFull.WAIT:
            self._room.clear()
            with self._lock:
                if self._closed or self._fits(record):
                    break
            await self._room.wait()
        return self.offer(record)

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all that was queued is acknowledged; returns whether it was in time."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.counts()[1]:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def close(self, timeout_s: float) -> None:
        """Flush, then stop; what is still queued is lost and counted."""
        if self._task is None:
            return
        try:
            await self.flush(timeout_s)
        finally:
            with self._lock:
                self._closed = True
            self._room.set()
            task, self._task = self._task, None
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_S)
            with self._lock:
                self._lost += len(self._queue) + self._taken
                self._queue.clear()
                self._taken = 0
            if self._lost:
                logger.warning("%d records were not sent: %s", self._lost, self.trouble or "there was no time")

    def counts(self) -> tuple[int, int, int, int]:
        """Return how many records were sent, wait, were dropped, were lost."""
        with self._lock:
            return self._sent, len(self._queue) + self._taken, self._dropped, self._lost

    def _fits(self, record: Encoded) -> bool:
        empty = not self._queue
        room = self._queued_bytes + len(record.value) <= self._max_bytes
        return len(self._queue) < self._max_records and (room or empty)

    def _add(self, record: Encoded) -> None:
        self._queue.append(record)
        self._queued_bytes += len(record.value)

    def _signal(self, event: asyncio.Event) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is loop:
            event.set()
        else:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                logger.debug("the loop closed while a record was queued")

    async def _run(self) -> None:
        publisher: Publisher | None = None
        counts: dict[str, int] = {}
        pause = FIRST_PAUSE_S
        batch: list[Encoded] = []
        try:
            while True:
                if not (batch := batch or self._take()):
                    self._wake.clear()
                    if not self._queue:
                        await self._wake.wait()
                    continue
                try:
                    if publisher is None:
                        publisher, counts = await self._connect()
                    await publisher.publish([self._out(record, counts) for record in batch])
                except Exception as error:  # noqa: BLE001  (whatever it is, records wait: losing this task loses all)
                    self._say_trouble(error)
                    if publisher is not None:
                        # The broker that comes back may be another one, with other partition counts.
                        await publisher.stop()
                        publisher = None
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_S)
                    continue
                self._settle(batch)
                batch, pause = [], FIRST_PAUSE_S
        finally:
            if publisher is not None:
                await publisher.stop()

    async def _connect(self) -> tuple[Publisher, dict[str, int]]:
        settings, fences = self._reach.settings, await self._reach.fences()
        found = await admin.find(self._reach.connection, settings)
        counts = {role: found[role].partitions or 0 for role in (TRACE_INGESTED, EVAL_SCORES)}
        missing = [self._topics[role].name for role, count in counts.items() if not count]
        if missing:
            raise TopicsWrong(f"there is no topic {', '.join(missing)}; `tgate topics create` or `tgate up` makes it")
        # Requests may be larger than a record's value: key, headers and framing come on top.
        limit = settings.max_record_bytes + 10_000
        return Publisher(self._reach.connection, idempotent=fences, max_record=limit), counts

    def _out(self, record: Encoded, counts: dict[str, int]) -> Out:
        partition = partition_for(record.key, counts[record.role])
        return Out(self._topics[record.role].name, partition, record.key, record.value)

    def _take(self) -> list[Encoded]:
        batch: list[Encoded] = []
        size = 0
        with self._lock:
            while self._queue and len(batch) < BATCH and size < BATCH_BYTES:
                record = self._queue.popleft()
                batch.append(record)
                size += len(record.value)
            self._queued_bytes -= size
            self._taken = len(batch)
        self._room.set()
        return batch

    def _settle(self, batch: list[Encoded]) -> None:
        with self._lock:
            self._sent += len(batch)
            self._taken = 0
        if self.trouble is not None:
            logger.info("publishing again")
        self.trouble = None
        self._idle.set()

    def _say_trouble(self, error: Exception) -> None:
        # The same trouble is said once: an agent may run for days without a broker.
        said = str(error) if not isinstance(error, AppendFailed) else "the broker does not answer"
        if self.trouble is None:
            logger.warning("nothing is published at present: %s", said or repr(error))
        self.trouble = said or repr(error)
