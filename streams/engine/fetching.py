"""The consumer's thread: reads the assigned partitions and hands out batches."""

# ruff: noqa: SLF001  (aiokafka and Faust have no public way to do this; both are pinned)

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    ConsumerStoppedError,
    IllegalStateError,
    KafkaError,
)
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP

from streams.engine.batch import Batch
from streams.engine.closing import close_consumer
from streams.engine.gaps import Gap
from streams.engine.gapwatch import GapWatch
from streams.engine.group_client import GroupClient
from streams.engine.lanes import Lane
from streams.engine.pace import slack_ms, time_limits
from streams.engine.tuning import Tuning

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_LOOK_S = 2.0


class BatchConsumerThread(AIOKafkaConsumerThread):  # type: ignore[misc]
    """Faust's consumer thread with its fetching replaced.

    All methods but `run` and the thread-safe `release` are called in the thread's loop.
    Faust hands aiokafka its live set of active partitions, which aiokafka takes for all
    partitions when it is empty; here each open lane is asked for by name, and a partition
    without a lane is never asked for.
    """

    _consumer: AIOKafkaConsumer | None

    tuning: Tuning = Tuning()
    on_gap: Callable[[Gap], Awaitable[None]]
    client_options: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lanes: dict[TopicPartition, Lane] = {}
        self._freed = asyncio.Event()
        self._next_look = 0.0

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the thread's loop and wait for it from another loop.

        Faust's own way, a queue with two workers, has one of them in the fetch all the time.
        """
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.thread_loop))

    def is_running(self) -> bool:
        """Return whether there is a loop that `run` can use."""
        return self._consumer is not None and self.thread_loop.is_running()

    def _create_worker_consumer(self, _: Any) -> AIOKafkaConsumer:
        self._watch = GapWatch(self._move, self._record, self.tuning.beyond_end_s)
        conf = self.app.conf
        consumer = AIOKafkaConsumer(
            **self.client_options,
            client_id=conf.broker_client_id,
            group_id=conf.id,
            group_instance_id=conf.consumer_group_instance_id,
            partition_assignment_strategy=[self.app.assignor],
            enable_auto_commit=False,
            # A position that is gone must be told, not silently replaced.
            auto_offset_reset="none",
            isolation_level="read_committed",
            max_poll_interval_ms=int(conf.broker_max_poll_interval * 1000),
            max_partition_fetch_bytes=conf.consumer_max_fetch_size,
            # A partition that was read empty waits for the fetch under way to its broker.
            fetch_max_wait_ms=self.tuning.fetch_max_wait_ms,
            check_crcs=conf.broker_check_crcs,
            session_timeout_ms=int(conf.broker_session_timeout * 1000),
            rebalance_timeout_ms=int(conf.broker_rebalance_timeout * 1000),
            heartbeat_interval_ms=int(conf.broker_heartbeat_interval * 1000),
            metadata_max_age_ms=conf.consumer_metadata_max_age_ms,
        )
        # aiokafka makes its client by itself; this one has not connected yet.
        consumer._client = GroupClient(
            **self.client_options,
            client_id=conf.broker_client_id,
            metadata_max_age_ms=conf.consumer_metadata_max_age_ms,
            rebalance_timeout_s=conf.broker_rebalance_timeout,
        )
        return consumer

    async def on_thread_stop(self) -> None:
        """Leave the group and close; must not raise, or the service waits for its thread for ever."""
        consumer, self._consumer = self._consumer, None
        coordinator = consumer._coordinator if consumer is not None else None
        # aiokafka does not leave in generation 0, which is Tansu's first; the next worker would
        # then wait for this one's session to end.
        if coordinator is not None and coordinator.generation == 0:
            coordinator.generation = 1
        await super().on_thread_stop()
        if consumer is not None:
            await close_consumer(consumer, self.tuning.goodbye_s)

    def close(self) -> None:
        """Do nothing: Faust would close the client from the wrong loop; on_thread_stop does it."""

    async def open(self, lane: Lane) -> None:
        """Seek to the lane's start, then let it be read: never the other way round."""
        self._lanes[lane.key] = lane
        self._seek(lane, lane.position)
        self._freed.set()

    async def close_lanes(self, *tps: TP) -> None:
        """Stop reading these partitions, or all."""
        keys = [TopicPartition(tp.topic, tp.partition) for tp in tps] or list(self._lanes)
        for key in keys:
            self._lanes.pop(key, None)

    def release(self, lane: Lane, is_done: bool) -> None:
        """Take back the batch that is out; from any thread."""
        self.thread_loop.call_soon_threadsafe(self._release, lane, is_done)

    def _release(self, lane: Lane, is_done: bool) -> None:
        if self._lanes.get(lane.key) is not lane:
            return
        if is_done:
            lane.settle()
        else:
            lane.busy = False
            delay = min(self.tuning.retry_max_s, self.tuning.retry_min_s * 2 ** min(lane.failures, 16))
            lane.failures += 1
            lane.not_before = time.monotonic() + delay
            self._seek(lane, lane.settled)
        self._freed.set()

    def _seek(self, lane: Lane, offset: int) -> None:
        """Forget what is at hand and read at an offset."""
        lane.restart(offset)
        self._move(lane, offset)

    def _move(self, lane: Lane, offset: int) -> None:
        """Set where the next read is, unless the partition has become another lane's meanwhile."""
        if self._lanes.get(lane.key) is not lane:
            return
        lane.position = offset
        consumer = self._ensure_consumer()
        # An error that was stored for an earlier position says nothing of this one.
        consumer._fetcher._records.pop(lane.key, None)
        try:
            consumer.seek(lane.key, offset)
        except IllegalStateError:
            del self._lanes[lane.key]

    async def start_of(self, tp: TP, topic_id: str) -> int:
        """Return the offset committed for this topic, else the earliest."""
        consumer = self._ensure_consumer()
        key = TopicPartition(tp.topic, tp.partition)
        committed = (await consumer._coordinator.fetch_committed_offsets([key])).get(key)
        # Brokers delete the offsets of a deleted topic, but a commit under way may come after that.
        if committed is not None and (not topic_id or committed.metadata in ("", topic_id)):
            return int(committed.offset)
        return int((await consumer.beginning_offsets([key]))[key])

    async def commit_offsets(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit; raises KafkaError."""
        consumer = self._ensure_consumer()
        assigned = consumer.assignment()
        wanted = {TopicPartition(tp.topic, tp.partition): offset for tp, offset in offsets.items()}
        await consumer.commit({key: wanted[key] for key in wanted if key in assigned})

    def member_id(self) -> str:
        """Return the id the group coordinator gave this worker."""
        return str(self._ensure_consumer()._coordinator.member_id)

    async def is_member(self) -> bool:
        """Ask the group coordinator whether this worker is a member still."""
        coordinator = self._ensure_consumer()._coordinator
        return coordinator.generation >= 0 and bool(await coordinator._do_heartbeat())

    async def poll(self, timeout_s: float) -> list[Batch]:
        """Return the next batch of every free partition that has one.

        Waits until there is one, a partition becomes free (the wait is for events only, no
        fetch is ever cancelled half-way) or the time is over.
        """
        consumer = self._ensure_consumer()
        deadline = time.monotonic() + timeout_s
        self._look_for_missing_topics(consumer)
        with consumer._subscription.fetch_context():
            while True:
                self._freed.clear()
                waiter = consumer._fetcher._create_fetch_waiter()
                try:
                    await self._fill(consumer)
                    batches = self._take()
                    left = min(deadline, self._next_attempt()) - time.monotonic()
                    if batches or time.monotonic() >= deadline:
                        return batches
                    await self._wait(waiter, max(left, 0.001))
                finally:
                    if not waiter.cancel() and not waiter.cancelled():
                        waiter.exception()

    def _look_for_missing_topics(self, consumer: AIOKafkaConsumer) -> None:
        """See soon that a topic was made again; aiokafka looks once in five minutes."""
        client, now = consumer._client, time.monotonic()
        if now >= self._next_look and not client._topics <= client.cluster.topics():
            self._next_look = now + _LOOK_S
            client.force_metadata_update()

    async def _wait(self, fetched: "asyncio.Future[None]", timeout_s: float) -> None:
        freed = asyncio.ensure_future(self._freed.wait())
        events: set[asyncio.Future[Any]] = {fetched, freed}
        try:
            await asyncio.wait(events, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            freed.cancel()

    async def _fill(self, consumer: AIOKafkaConsumer) -> None:
        """Move what aiokafka has read into the lanes."""
        if consumer._closed:
            raise ConsumerStoppedError
        # Also takes errors of the group's coordination, which stands still until it is asked.
        consumer._coordinator.check_errors()
        for lane in list(self._lanes.values()):
            # While the group is rebalancing, asking would wait for the next assignment and
            # then return records of a position that nobody sought.
            if consumer._subscription.reassignment_in_progress:
                return
            state = self._readable(consumer, lane)
            if state is None:
                continue
            try:
                await self._watch.read(consumer, lane, state)
            except ConsumerStoppedError:
                raise
            except Exception as error:  # noqa: BLE001  (whatever is wrong with one partition, the others are read)
                logger.warning("%s: reading failed, will try again: %r", lane.tp, error)
                lane.not_read_before = time.monotonic() + self.tuning.idle_s
                self._move(lane, lane.position)

    def _readable(self, consumer: AIOKafkaConsumer, lane: Lane) -> Any:
        """Return aiokafka's state of the partition if more of it should be read now."""
        assignment = consumer._subscription.subscription.assignment
        state = assignment.state_value(lane.key) if assignment else None
        waits = lane.recording is not None or time.monotonic() < lane.not_read_before
        if state is None or lane.closed or waits or not lane.has_room(self.tuning.max_batch_bytes):
            return None
        if state.has_valid_position and state.position != lane.position:
            self._move(lane, lane.position)
        return state

    def _record(self, gap: Gap) -> "asyncio.Future[None]":
        """Have the app write a gap down, in its own loop."""

        async def record() -> None:
            await self.on_gap(gap)

        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(record(), self.parent_loop))

    def _take(self) -> list[Batch]:
        now = time.monotonic()
        lanes = [lane for lane in self._lanes.values() if not lane.closed]
        heads = {lane.key: lane.head(now) for lane in lanes if lane.reading.by_time and not lane.is_stuck}
        slack = slack_ms(heads.values(), time.time_ns() // 1_000_000, self.tuning.slack_ms, self.tuning.most_slack_ms)
        limits = time_limits(heads, slack_ms=slack, patience_s=self.tuning.patience_s)
        taken = (lane.take(now, limits.get(lane.key)) for lane in lanes)
        return [batch for batch in taken if batch is not None]

    def _next_attempt(self) -> float:
        """Return when a lane that waits by itself wants to be looked at again."""
        now = time.monotonic()
        lanes = self._lanes.values()
        waiting = [at for lane in lanes for at in (lane.not_before, lane.not_read_before) if at > now]
        by_time = [lane for lane in lanes if lane.reading.by_time]
        if len(by_time) > 1 and any(lane.head(now).next_ms is not None for lane in by_time):
            waiting.append(now + self.tuning.look_again_s)
        return min(waiting, default=now + self.tuning.idle_s)

    def fatal_error(self) -> BaseException | None:
        """Return why the group's coordination ended for good, if it did."""
        task = self._ensure_consumer()._coordinator._coordination_task
        if task.done() and not task.cancelled():
            error: BaseException | None = task.exception()
            return error or KafkaError("the group's coordination has ended")
        return None
