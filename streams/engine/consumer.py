"""Faust's consumer with batches in place of records, and commits that follow done batches."""

# ruff: noqa: SLF001  (aiokafka and Faust have no public way to do this; both are pinned)

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiokafka.errors import CommitFailedError, ConsumerStoppedError, KafkaError
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP, ConsumerMessage

from streams.engine.batch import Batch
from streams.engine.fetching import BatchConsumerThread
from streams.engine.gaps import Gap
from streams.engine.lanes import Lane
from streams.engine.slices import Slices
from streams.engine.tuning import Tuning


class BatchMessage(ConsumerMessage):  # type: ignore[misc]
    """A Faust message whose value is a batch.

    Faust acknowledges in several places, some of them compiled, which do not call the
    consumer; setting `acked` is what all of them do.
    """

    __slots__ = ("_acked", "on_acked")

    on_acked: Callable[[Batch], None] | None

    @property
    def acked(self) -> bool:
        """Whether Faust has finished with the message."""
        return self._acked

    @acked.setter
    def acked(self, value: bool) -> None:
        self._acked = value
        if value and self.on_acked is not None:
            self.on_acked(self.value)


class BatchConsumer(Consumer):  # type: ignore[misc]
    """Hands Faust one message per partition, carrying a batch, and the next one after its ack.

    At most one batch of a partition is out. What may be committed is where the last done
    batch ends; Faust's lists of acknowledged offsets and of gaps are not used.
    """

    _thread: BatchConsumerThread

    tuning: Tuning = Tuning()
    on_gap: Callable[[Gap], Awaitable[None]]
    client_options: Mapping[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.lanes: dict[TP, Lane] = {}
        self._out: dict[TP, BatchMessage] = {}
        self._returned = asyncio.Event()
        self._commit_lock = asyncio.Lock()
        self._slices = Slices()
        super().__init__(*args, **kwargs)

    def _new_consumer_thread(self) -> BatchConsumerThread:
        thread = BatchConsumerThread(self, loop=self.loop, beacon=self.beacon)
        thread.tuning = self.tuning
        thread.on_gap = self.on_gap
        thread.client_options = self.client_options
        return thread

    # -- reading

    async def open(self, lane: Lane) -> None:
        """Start reading a partition at its lane's start."""
        lane.slices = self._slices
        self.lanes[lane.tp] = lane
        await self._thread.run(self._thread.open(lane))

    async def close_lanes(self, *tps: TP) -> None:
        """Stop reading these partitions, or all; what is out of them has no effect any more."""
        if self._thread.is_running():
            await self._thread.run(self._thread.close_lanes(*tps))
        for tp in tps or tuple(self.lanes):
            self._out.pop(tp, None)
            if lane := self.lanes.pop(tp, None):
                lane.closed = True

    async def start_of(self, tp: TP, topic_id: str) -> int:
        """Return the offset committed for this topic, else the earliest."""
        return await self._thread.run(self._thread.start_of(tp, topic_id))

    def member_id(self) -> str:
        """Return the id the group coordinator gave this worker."""
        return self._thread.member_id()

    async def is_member(self) -> bool:
        """Ask the group coordinator whether this worker is a member still."""
        return await self._thread.run(self._thread.is_member())

    def is_out(self, tp: TP) -> bool:
        """Return whether a batch of the partition is being worked on."""
        return tp in self._out

    async def _drain_messages(self, fetcher: Any) -> None:
        """Poll until stopped. Faust's `>=` check of read offsets, which doubles records, is gone."""
        while not (self.should_stop or fetcher.should_stop):
            if not self.flow_active:
                await self.wait(self.can_resume_flow)
                continue
            try:
                for batch in await self._thread.run(self._thread.poll(self.tuning.idle_s)):
                    await self._hand_out(batch)
            except ConsumerStoppedError:
                return
            except KafkaError as error:
                if fatal := self._thread.fatal_error():
                    raise fatal from error
                self.log.warning("reading failed, will try again: %r", error)
                await self.sleep(self.tuning.idle_s)

    async def _hand_out(self, batch: Batch) -> None:
        lane = batch._lane
        if lane.closed or not self.flow_active or self.lanes.get(batch.tp) is not lane:
            return
        first = batch.records[0]
        message = BatchMessage(
            batch.tp.topic,
            batch.partition,
            batch.first_offset,
            (first.timestamp or 0) / 1000.0,
            first.timestamp_type,
            None,
            None,
            batch,
            None,
            tp=batch.tp,
            generation_id=self.app.consumer_generation_id,
        )
        message.on_acked = self._take_back
        self._out[batch.tp] = message
        await self.callback(message)

    def _take_back(self, batch: Batch) -> None:
        out = self._out.get(batch.tp)
        if out is None or out.value is not batch:
            return
        del self._out[batch.tp]
        if not batch.is_done:
            self.log.warning("%r was not done, it will be read again", batch)
        self._thread.release(batch._lane, batch.is_done)
        self._returned.set()

    # -- committing

    async def commit(self, topics: Any = None, **_: bool) -> bool:
        """Commit where the done batches of these partitions end; of all when none are named.

        Returns whether all of it is committed now; a rebalance or a broker that does not
        answer is no error: the records are then read again by whoever comes next.
        """
        async with self._commit_lock:
            # Whoever waited here finds its offsets committed by the one before it.
            offsets = {
                tp: OffsetAndMetadata(lane.settled, lane.topic_id)
                for tp, lane in self.lanes.items()
                if lane.settled != lane.committed and not lane.closed
            }
            self._acked.clear()
            self._acked_index.clear()
            wanted = {tp for tp in offsets if not topics or tp in topics or tp.topic in topics}
            if not wanted:
                return True
            try:
                await asyncio.wait_for(
                    self._thread.run(self._thread.commit_offsets(offsets)),
                    self.app.conf.broker_request_timeout,
                )
            except CommitFailedError:
                return False
            except (KafkaError, TimeoutError) as error:
                self.log.warning("offsets were not committed: %r", error)
                return False
            for tp, committed in offsets.items():
                if lane := self.lanes.get(tp):
                    lane.committed = committed.offset
            return True

    async def force_commit(self, topics: Any = None, **_: bool) -> bool:
        """Commit; the same as `commit`."""
        return await self.commit(topics)

    # -- ending

    async def wait_empty(self) -> None:
        """Wait for the batches that are out, then store, commit and stop reading.

        A batch still in a stream's queue will not be begun; it is read again by the next owner.
        One that does not come back in time is given up: its effects are repeats, and its state
        write fails.
        """
        if not self._thread.is_running():
            return
        await self._thread.run(self._thread.close_lanes())
        for tp in [tp for tp, message in self._out.items() if not message.tracked]:
            del self._out[tp]
        deadline = time.monotonic() + self.tuning.drain_s
        while self._out and (left := deadline - time.monotonic()) > 0:
            self._returned.clear()
            try:
                await asyncio.wait_for(self._returned.wait(), left)
            except TimeoutError:
                self.log.warning("gave up on %s", [m.value for m in self._out.values()])
        try:
            async with asyncio.timeout(self.tuning.goodbye_s):
                await self.app.tables.store()
        except TimeoutError:
            self.log.warning("the broker does not answer: the last states were not stored, they are folded again")
        try:
            async with asyncio.timeout(self.tuning.goodbye_s if self.app.should_stop else None):
                await self.commit()
        except TimeoutError:
            self.log.warning("the broker does not answer: the last offsets were not committed")

    async def on_stop(self) -> None:
        """Stop reading; the app has waited for its batches before."""
        await self.wait_empty()
        await self.close_lanes()
        self.transport._topic_waiters.clear()

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Let Faust wait for what is out, then take the partitions out of use."""
        await super().on_partitions_revoked(revoked)
        await self.app.tables.after_revoked()

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Let Faust and the tables know, after which the rebalance is over."""
        await super().on_partitions_assigned(assigned, generation_id)
        self.app.on_rebalance_end()

    async def perform_seek(self) -> None:
        """Do nothing: every lane is opened by a seek of its own."""

    async def on_task_error(self, exc: BaseException) -> None:
        """Do nothing: what is not done is not committed."""

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing: Faust's watch counts records, of which it sees none here."""
