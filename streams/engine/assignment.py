"""Brings assigned partitions up and down, in Faust's place for recovering tables."""

# ruff: noqa: SLF001  (aiokafka and Faust have no public way to do this; both are pinned)

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError
from faust.tables import TableManager
from faust.types import TP

from streams.engine.changelog import ChangelogWriter, restore, transactional_id
from streams.engine.connection import Connection
from streams.engine.errors import EngineError, Fenced, Revoked
from streams.engine.lanes import Lane
from streams.engine.stages import Stage
from streams.engine.state import PartitionState, Recovery
from streams.engine.topic_ids import TopicIds
from streams.engine.tuning import Tuning

# So that a write which fails each time does not have a whole changelog read without a pause.
_REBUILD_AFTER_S = 1.0


@dataclass(frozen=True)
class _Kept:
    """A partition between two generations of the group: usable only by the very next one."""

    position: int
    topic_id: str
    state: PartitionState | None


class Assignments(TableManager):  # type: ignore[misc]
    """Faust's table manager without Faust tables.

    For each assigned partition: a new writer, which fences the older ones; its changelog to the
    end; the stage's word on where to read on; the seek; and only then its first batch. Each
    partition is on its own, so one that takes long or fails does not hold up the others.
    """

    stages: Sequence[Stage] = ()
    connection: Connection
    topic_ids: TopicIds
    fences: bool = False
    tuning: Tuning = Tuning()
    max_record: int = 1_000_000

    def __init__(self, app: Any, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self._by_topic = {topic: stage for stage in self.stages for topic in stage.topics}
        self._states: dict[TP, PartitionState] = {}
        self._kept: dict[TP, _Kept] = {}
        self._tasks: dict[TP, asyncio.Task[None]] = {}
        self._closings: dict[TP, asyncio.Task[None]] = {}
        self._rebuilding: set[TP] = set()
        self._generation = -1
        self._member = ""
        self._all_up = asyncio.Event()
        self._restoring = asyncio.Semaphore(self.tuning.restores)

    # -- in Faust's life cycle

    async def on_start(self) -> None:
        """Say that there are no Faust tables, without the second's sleep before it."""
        self._tables_finalized.set()
        self._tables_registered.set()

    async def on_stop(self) -> None:
        """Let go of all partitions; the app has waited for their batches."""
        await self.app._fetcher.stop()
        await self._cancel_tasks()
        await self.app.consumer.close_lanes()
        await asyncio.gather(*(self._close(tp) for tp in list(self._states)))
        await self.topic_ids.stop()

    def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Do nothing yet: batches that are out may still finish; see after_revoked."""

    async def wait_until_recovery_completed(self) -> bool:
        """Wait until every partition of the first assignment is up; True when stopped before."""
        stopped: bool = await self.wait_for_stopped(self._all_up)
        return stopped

    async def after_revoked(self) -> None:
        """Take all partitions out of use, once what was out is back or was given up."""
        consumer = self.app.consumer
        await self._cancel_tasks()
        self._kept = {
            tp: _Kept(lane.settled, lane.topic_id, lane.state)
            for tp, lane in consumer.lanes.items()
            if not consumer.is_out(tp) and (lane.state is None or lane.state.ended is None)
        }
        await consumer.close_lanes()
        lost = [tp for tp in self._states if tp not in self._kept]
        await asyncio.gather(*(self._close(tp) for tp in lost))

    async def on_rebalance(
        self,
        assigned: set[TP],
        revoked: set[TP],  # noqa: ARG002  (Faust's call; what was revoked is known already)
        newly_assigned: set[TP],  # noqa: ARG002  (to Faust what was kept is not new)
        generation_id: int = 0,
    ) -> None:
        """Start to bring the assigned partitions up; return at once, no heartbeats go out here."""
        member = self.app.consumer.member_id()
        is_next = generation_id == self._generation + 1 and member == self._member
        self._generation, self._member = generation_id, member
        kept = {tp: kept for tp, kept in self._kept.items() if is_next and tp in assigned and self._is_usable(tp, kept)}
        self._kept = {}
        for tp in [tp for tp in self._states if tp not in kept]:
            self.add_future(self._close(tp))
        self.app.in_recovery = True
        # Nothing flows before a lane is open, so Faust's own gates may open now, once.
        await self.app.on_rebalance_complete.send()
        self.app.flow_control.resume()
        self.app.consumer.resume_flow()
        await self.app._fetcher.maybe_start()
        self._tasks = {
            tp: asyncio.ensure_future(self._bring_up(tp, kept.get(tp))) for tp in assigned if tp.topic in self._by_topic
        }
        self.add_future(self._wait_until_up(list(self._tasks.values())))

    def _is_usable(self, tp: TP, kept: _Kept) -> bool:
        """Whether the state has not come to an end during the rebalance: a write of it may have been under way."""
        return kept.state is None or (self._states.get(tp) is kept.state and kept.state.ended is None)

    async def _wait_until_up(self, tasks: Iterable["asyncio.Task[None]"]) -> None:
        await asyncio.gather(*tasks, return_exceptions=True)
        if not any(task.cancelled() for task in tasks):
            self.app.in_recovery = False
            self.on_actives_ready()
            self.on_standbys_ready()
            self._all_up.set()
            self.log.info("all assigned partitions are being read")

    def restored(self) -> dict[TP, int]:
        """Return how far each state has been restored: the offset of its last changelog record, -1 before the first."""
        return {tp: state.applied for tp, state in self._states.items()}

    # -- one partition

    async def _bring_up(self, tp: TP, kept: _Kept | None = None, wait_s: float = 0.0) -> None:
        """Bring a partition up, however often it takes."""
        failures = 0
        while not self.should_stop:
            await asyncio.sleep(wait_s)
            try:
                await self._open(tp, kept)
            except Fenced:
                wait_s = self._leave_alone(tp)
            except self.app.fatal as error:
                self.app.end(error)
                return
            except Exception as error:
                wait_s = min(self.tuning.retry_max_s, self.tuning.retry_min_s * 2 ** min(failures, 16))
                failures += 1
                known = isinstance(error, KafkaError | EngineError | TimeoutError | OSError)
                self.log.warning("%s: not up, next try in %.1f s: %r", tp, wait_s, error, exc_info=not known)
            else:
                return
            kept = None
            await self._close(tp)

    def _leave_alone(self, tp: TP) -> float:
        """Return for how long a partition with a newer owner is left to it.

        Normally a rebalance comes before that. If none does, the other was a worker that did not
        know that it had been replaced, and the partition is still ours.
        """
        self.log.warning("%s: has a newer owner, left alone", tp)
        return self.tuning.session_timeout_s

    async def _open(self, tp: TP, kept: _Kept | None) -> None:
        stage = self._by_topic[tp.topic]
        consumer = self.app.consumer
        topic_id = ""
        if kept is not None:
            start, topic_id, state = kept.position, kept.topic_id, kept.state
        elif stage.table is not None:
            async with self._restoring:
                state = await self._build(tp, stage)
            told = await stage.table.on_restored(tp.partition, state)
            start = told if told is not None else await consumer.start_of(tp, "")
        else:
            # Before anything is read, and before the offset that may be another topic's.
            topic_id = await self.topic_ids.topic_id(tp)
            start, state = await consumer.start_of(tp, topic_id), None
        self.log.info("%s: reading from %s%s", tp, start, " (kept)" if kept else "")
        lane = Lane(tp, stage.reading, start, state)
        if stage.table is None:
            lane.topic_id, lane.ask_topic_id = topic_id, self.topic_ids.topic_id
        await consumer.open(lane)

    async def _build(self, tp: TP, stage: Stage) -> PartitionState:
        """Fence, then restore: in this order no older owner can write behind our reading."""
        table = stage.table
        assert table is not None
        began = time.monotonic()
        await self._close(tp)
        # A worker that was replaced without knowing it must not fence the one that replaced it.
        if not await self.app.consumer.is_member():
            raise Revoked(f"not a member of the group {self.app.conf.id} now")
        changelog = table.changelog_tp(tp.partition)
        name = transactional_id(self.app.conf.id, table.name, tp.partition)
        writer = ChangelogWriter(
            self.connection,
            changelog,
            transactional_id=name if self.fences else None,
            timeout_s=self.tuning.delivery_timeout_s,
        )
        await writer.open()
        try:
            store = table.open_store(tp.partition)
        except BaseException:
            await writer.close()
            raise
        state = PartitionState(table.name, tp, store, writer, self.max_record)
        self._states[tp] = state
        count = await restore(self.connection, changelog, store)
        state.recovery = Recovery(count, time.monotonic() - began)
        self.log.info("%s: restored %s records of %s", tp, count, table.changelog)
        return state

    async def store(self) -> None:
        """Have the stages store what is not stored yet; what they cannot is folded again by the next owner."""
        released = {
            tp: table.before_release(tp.partition)
            for tp, state in self._states.items()
            if state.ended is None and (table := self._by_topic[tp.topic].table) is not None
        }
        results = await asyncio.gather(*released.values(), return_exceptions=True)
        for tp, error in zip(released, results, strict=True):
            if error is not None:
                self.log.warning("%s: not stored before it may go: %r", tp, error)

    async def _close(self, tp: TP) -> None:
        """End a partition's state, if it has one, and wait until it has let go of its files."""
        if (state := self._states.pop(tp, None)) is not None:
            self._closings[tp] = asyncio.ensure_future(self._end(tp, state))
        if (closing := self._closings.get(tp)) is not None:
            await asyncio.shield(closing)

    async def _end(self, tp: TP, state: PartitionState) -> None:
        await state.close()
        if (table := self._by_topic[tp.topic].table) is not None:
            table.on_closed(tp.partition)

    async def failed(self, tp: TP, state: PartitionState) -> None:
        """A state cannot be written any more: build it again, from what its changelog holds now."""
        # A batch and a write beside it may both find that out: one rebuild is enough, two would fence each other.
        if self._states.get(tp) is not state or tp in self._rebuilding:
            return
        self._rebuilding.add(tp)
        try:
            await self.app.consumer.close_lanes(tp)
            wait_s = self._leave_alone(tp) if isinstance(state.ended, Fenced) else _REBUILD_AFTER_S
            await self._close(tp)
            self._bring_up_again(tp, wait_s)
        finally:
            self._rebuilding.discard(tp)

    async def topic_replaced(self, tp: TP) -> None:
        """The topic was made again: drop what was read, which may be of either, and read the new one."""
        await self.app.consumer.close_lanes(tp)
        self._bring_up_again(tp)

    def _bring_up_again(self, tp: TP, wait_s: float = 0.0) -> None:
        # In a rebalance it is not known whose the partition is; its end brings up what is ours.
        if not self.app.rebalancing and not self.should_stop:
            self._tasks[tp] = asyncio.ensure_future(self._bring_up(tp, wait_s=wait_s))

    async def _cancel_tasks(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
