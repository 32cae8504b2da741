"""Gaps found while records are at hand, or out: only what is gone is passed over; consumer and journal are doubles."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

from faust.types import TP

from streams.engine.gaps import Gap, GapCause
from streams.engine.gapwatch import GapWatch
from streams.engine.lanes import Lane, Reading
from tests.engine.test_lanes import record

TOPIC = TP("log", 0)


class Scene:
    """A lane at offset 10 of a log that begins at `first`; the journal answers when it is told."""

    def __init__(self, first: int) -> None:
        self.lane = Lane(TOPIC, Reading(contiguous=True), 10)
        self.gaps: list[Gap] = []
        self.journal: asyncio.Future[None] | None = None
        self.watch = GapWatch(self.move, self.record, beyond_end_s=1.0)
        self.first, self.end = first, 1000

    async def beginning_offsets(self, keys):
        return dict.fromkeys(keys, self.first)

    def move(self, lane: Lane, offset: int) -> None:
        lane.position = offset

    def record(self, gap: Gap) -> "asyncio.Future[None]":
        self.gaps.append(gap)
        self.journal = asyncio.get_running_loop().create_future()
        return self.journal

    async def read(self, *offsets: int, position: int) -> None:
        state = SimpleNamespace(has_valid_position=True, position=position, highwater=self.end, lso=None)
        await self.watch.accept(self, self.lane, [record(offset) for offset in offsets], state)

    async def journaled(self) -> None:
        assert self.journal is not None
        self.journal.set_result(None)
        await asyncio.sleep(0)

    def taken(self) -> list[int]:
        batch = self.lane.take(0.0, None)
        return [] if batch is None else [item.offset for item in batch.records]


def run(first: int, check: Callable[[Scene], object]) -> None:
    asyncio.run(check(Scene(first)))  # type: ignore[arg-type]


def test_what_was_read_before_retention_passed_is_handed_out() -> None:
    async def check(scene: Scene) -> None:
        await scene.read(10, 11, 12, position=13)
        await scene.watch.out_of_range(scene, scene.lane)
        assert scene.gaps == [Gap(TOPIC, 13, 50, GapCause.RETENTION)]
        await scene.journaled()
        assert (scene.lane.settled, scene.lane.position, scene.lane.recording) == (10, 50, None)
        assert scene.taken() == [10, 11, 12]

    run(50, check)


def test_nothing_at_hand_is_settled_at_the_gap_end_once_it_is_journaled() -> None:
    async def check(scene: Scene) -> None:
        await scene.watch.out_of_range(scene, scene.lane)
        assert (scene.lane.settled, scene.lane.position) == (10, 10)
        assert scene.lane.recording is not None
        await scene.journaled()
        assert (scene.lane.settled, scene.lane.position) == (50, 50)

    run(50, check)


def test_a_batch_that_fails_while_its_gap_is_journaled_is_read_again() -> None:
    async def check(scene: Scene) -> None:
        await scene.read(10, 11, position=12)
        assert scene.taken() == [10, 11]
        await scene.watch.out_of_range(scene, scene.lane)
        scene.lane.busy = False
        scene.lane.restart(10)
        await scene.journaled()
        assert (scene.lane.settled, scene.lane.position) == (10, 10)

    run(50, check)


def test_a_topic_that_was_made_again_takes_what_is_at_hand_along() -> None:
    async def check(scene: Scene) -> None:
        await scene.read(10, 11, position=12)
        await scene.watch.out_of_range(scene, scene.lane)
        await scene.journaled()
        assert scene.gaps == [Gap(TOPIC, 12, 0, GapCause.BEYOND_END)]
        assert (scene.taken(), scene.lane.settled, scene.lane.position) == ([], 0, 0)

    run(0, check)


def test_what_cannot_be_decoded_ends_where_anything_can_be_read() -> None:
    """Also where that is a transaction's marker, or the end of the partition."""

    async def check(scene: Scene) -> None:
        for offsets, position in (((12,), 13), ((), 13), ((), 12)):
            lane = scene.lane = Lane(TOPIC, Reading(), 10)
            scene.gaps.clear()
            for _ in range(3):
                scene.watch._pass_by(lane, UnicodeDecodeError("utf-8", b"\xff", 0, 1, "told so"))
            scene.end = 1000 if position > 12 else 12
            await scene.read(*offsets, position=position)
            assert scene.gaps == [Gap(TOPIC, 10, 12, GapCause.UNREADABLE)]
            await scene.journaled()
            assert (lane.singly, lane.position, scene.taken()) == (False, 12, [])

    run(0, check)


def test_while_nothing_has_come_nothing_is_passed_over() -> None:
    async def check(scene: Scene) -> None:
        for _ in range(3):
            scene.watch._pass_by(scene.lane, UnicodeDecodeError("utf-8", b"\xff", 0, 1, "told so"))
        await scene.read(position=12)
        assert (scene.gaps, scene.lane.position) == ([], 12)

    run(0, check)


def test_a_hole_is_read_again_before_it_is_believed() -> None:
    async def check(scene: Scene) -> None:
        for _ in range(5):
            await scene.read(10, 12, position=13)
            assert scene.lane.position == 11
            assert scene.gaps == []
            await asyncio.sleep(0)
            scene.lane.restart(10)
        await scene.read(10, 12, position=13)
        assert scene.gaps == [Gap(TOPIC, 11, 12, GapCause.MISSING)]
        await scene.journaled()
        assert scene.taken() == [10]
        assert scene.lane.position == 12

    run(0, check)
