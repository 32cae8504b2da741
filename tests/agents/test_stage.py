"""A fold stage under failures in every place: each record is folded once into what is stored, and its output is there."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from faust.types import TP

from streams.agents import remembering
from streams.agents.stage import FoldStage
from streams.engine import AppendFailed, Batch, ChangelogFailed, PartitionState, Reading, Recovery, Revoked
from streams.engine.lanes import Lane
from streams.engine.stores import Changes, Mark, MemoryStore
from tests.engine.test_lanes import record

LOG = TP("log", 0)
RECORDS = 60


@dataclass
class Fold:
    """Knows which offsets it was given, and takes only the one that comes next."""

    position: int
    seen: list[int] = field(default_factory=list)


class Topic:
    """Takes outputs, or fails when told to."""

    def __init__(self) -> None:
        self.outputs: list[int] = []
        self.fails = False

    async def publish(self, outs: Sequence[int]) -> None:
        await asyncio.sleep(0)
        self.outputs += outs
        if self.fails:
            raise AppendFailed("no ack")


class Changelog:
    """Takes writes, or fails when told to."""

    fences = True

    def __init__(self) -> None:
        self.fails = False

    async def append(self, changes: Changes) -> Mark:
        await asyncio.sleep(0)
        if self.fails:
            raise ChangelogFailed("no ack")
        return Mark(0, b"")

    async def close(self) -> None:
        """Do nothing."""


class Stage(FoldStage[Fold, Any]):
    def take_up(self, partition: int, state: PartitionState) -> Fold:
        stored = state.get(b"seen") or b""
        seen = [int(each) for each in stored.split()]
        return Fold(int(state.get(b"position") or 0), seen)

    def read(self, each: ConsumerRecord) -> Any:
        return each

    def apply(self, fold: Fold, read: Any) -> Any:
        assert read.offset == len(fold.seen), "a record was left out, or came twice"
        fold.seen.append(read.offset)
        return (read.offset,)

    def remember(self, fold: Fold, partition: int) -> dict[bytes, bytes | None]:
        return {b"seen": b" ".join(b"%d" % each for each in fold.seen), b"position": b"%d" % fold.position}


class Worker:
    """Reads the log as the engine does: on after what is settled whenever something failed."""

    def __init__(self) -> None:
        self.topic, self.changelog, self.store = Topic(), Changelog(), MemoryStore()
        outbox: Any = SimpleNamespace(record=lambda output: output)
        meter: Any = SimpleNamespace(
            tally=lambda: SimpleNamespace(output=lambda _: None, count=lambda: None),
            recovered=lambda *_: None,
            closed=lambda _: None,
        )
        self.stage = Stage(self.topic, outbox, meter)  # type: ignore[arg-type]
        self.rebuilds: list[PartitionState] = []
        self.stage.rebuild = self.rebuilds.append

    async def open(self) -> None:
        """Bring the partition up from what is stored."""
        self.stage.on_closed(0)
        self.state = PartitionState("sessions", LOG, self.store, self.changelog, 10_000)  # type: ignore[arg-type]
        self.state.recovery = Recovery(0, 0.0)
        self._read_from(await self.stage.on_restored(0, self.state))

    def keep(self) -> None:
        """Go through a rebalance that leaves the partition here."""
        self.lane.closed = True
        self._read_from(self.lane.settled)

    def _read_from(self, offset: int) -> None:
        self.lane = Lane(LOG, Reading(contiguous=True, max_records=7), offset, self.state)

    async def step(self) -> None:
        """Hand out one batch, and take it back."""
        end = min(RECORDS, self.lane.position + 5)
        self.lane.accept([record(offset) for offset in range(self.lane.position, end)], end)
        batch = self.lane.take(0.0, None)
        if batch is None:
            return
        try:
            await self.stage.handle(batch)
        except (AppendFailed, ChangelogFailed):
            self.lane.busy = False
            self.lane.restart(self.lane.settled)
        else:
            self.lane.settle()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_fails_each_record_counts_once(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remembering, "INTERVAL_S", 0.0)
    chance = random.Random(seed)

    async def check() -> None:
        worker = Worker()
        await worker.open()
        for _ in range(120):
            worker.topic.fails = chance.random() < 0.2
            worker.changelog.fails = chance.random() < 0.1
            await worker.step()
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            if worker.rebuilds or worker.state.ended is not None:
                worker.rebuilds.clear()
                await worker.open()
            elif chance.random() < 0.1:
                worker.keep()
        worker.topic.fails = worker.changelog.fails = False
        if worker.state.ended is not None:
            await worker.open()
        while worker.stage.folds.get(0) is None or worker.stage.folds[0].position < RECORDS:
            await worker.step()
        await worker.stage.before_release(0)
        assert worker.store.get(b"seen") == b" ".join(b"%d" % number for number in range(RECORDS))
        assert set(worker.topic.outputs) == set(range(RECORDS))
        worker.stage.on_closed(0)

    asyncio.run(asyncio.wait_for(check(), 60))


def test_a_batch_that_waited_while_its_partition_was_built_again_puts_nothing_out():
    async def check() -> None:
        worker = Worker()
        await worker.open()
        waiting, worker.lane.closed = Batch(worker.lane, [record(50)], 51), True
        await worker.open()
        with pytest.raises(Revoked):
            await worker.stage.handle(waiting)
        assert worker.topic.outputs == []
        await worker.step()
        assert worker.topic.outputs == [0, 1, 2, 3, 4]
        worker.stage.on_closed(0)

    asyncio.run(check())


def test_a_batch_of_a_partition_that_went_away_is_not_begun():
    async def check() -> None:
        worker = Worker()
        await worker.open()
        worker.stage.on_closed(0)
        with pytest.raises(Revoked):
            await worker.stage.handle(Batch(worker.lane, [record(0)], 1))

    asyncio.run(check())
