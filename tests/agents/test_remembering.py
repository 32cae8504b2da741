"""State is stored beside the batches: many at once, nothing that is not published, and never past a failure."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from faust.types import TP

from streams.agents import remembering
from streams.agents.remembering import Remembering
from streams.engine import Batch, ChangelogFailed, Reading, Revoked
from streams.engine.lanes import Lane
from streams.tables import Changes
from tests.engine.test_lanes import record


class State:
    """Takes writes when it is told to."""

    table, partition = "sessions", 0

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None
        self.written: list[Changes] = []

    async def commit(self, changes: Changes) -> None:
        await self.open.wait()
        if self.error is not None:
            raise self.error
        self.written.append(changes)


class Scene:
    """A partition whose fold is the offset that comes next."""

    def __init__(self) -> None:
        self.state = State()
        self.lane = Lane(TP("log", 0), Reading(), 0)
        self.folded = 0
        self.rebuilt = 0
        self.it = Remembering(self.state, self.take, self.rebuild)  # type: ignore[arg-type]

    def take(self) -> Changes:
        return {b"p/0": b"%d" % self.folded}

    def rebuild(self) -> None:
        self.rebuilt += 1

    async def batch(self, *, fails: bool = False) -> None:
        async with self.it.turn:
            at = self.folded
            self.folded += 1
            if fails:
                await self.it.forget()
                self.folded = self.lane.settled
                return
            self.it.published(Batch(self.lane, [record(at)], at + 1))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "INTERVAL_S", 0.05)


def run(check: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(check, 60))


async def turns_of_the_loop() -> None:
    """Let everything run that can without time passing."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110  (a poll; `run` has a deadline)
        await asyncio.sleep(0.01)


def test_one_write_covers_many_batches_and_settles_them():
    async def check() -> None:
        scene = Scene()
        for _ in range(3):
            await scene.batch()
        assert (scene.lane.published, scene.lane.settled) == (3, 0)
        await until(lambda: scene.state.written)
        assert (scene.state.written, scene.lane.settled) == ([{b"p/0": b"3"}], 3)
        await scene.batch()
        await until(lambda: scene.lane.settled == 4)
        assert len(scene.state.written) == 2

    run(check())


def test_a_batch_under_way_is_not_in_the_write():
    async def check() -> None:
        scene = Scene()
        await scene.batch()
        async with scene.it.turn:
            scene.folded = 99  # folded, and not published
            writing = asyncio.ensure_future(scene.it.write())
            await turns_of_the_loop()
            assert not scene.state.written
            scene.folded = 1
        await writing
        assert scene.state.written == [{b"p/0": b"1"}]

    run(check())


def test_after_a_failure_reading_goes_on_from_the_write_that_was_under_way(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remembering, "INTERVAL_S", 60)

    async def check() -> None:
        scene = Scene()
        scene.state.open.clear()
        await scene.batch()
        writing = asyncio.ensure_future(scene.it.write())
        await turns_of_the_loop()
        await scene.batch()
        failing = asyncio.ensure_future(scene.batch(fails=True))
        await turns_of_the_loop()
        assert not failing.done()
        scene.state.open.set()
        await asyncio.gather(writing, failing)
        assert (scene.folded, scene.lane.settled) == (1, 1)
        await scene.it.write()
        assert scene.state.written == [{b"p/0": b"1"}]

    run(check())


def test_a_write_that_fails_has_the_partition_built_again():
    async def check() -> None:
        scene = Scene()
        scene.state.error = ChangelogFailed("no ack")
        await scene.batch()
        await until(lambda: scene.rebuilt)
        assert (scene.rebuilt, scene.lane.settled) == (1, 0)
        # What was taken for it is lost to later writes, so there are none, though the broker would take them.
        scene.state.error = None
        for _ in range(2):
            with pytest.raises(ChangelogFailed):
                await scene.batch()
            with pytest.raises(ChangelogFailed):
                await scene.it.write()
        assert (scene.state.written, scene.lane.published) == ([], 1)

    run(check())


def test_before_it_is_released_everything_is_written():
    async def check() -> None:
        scene = Scene()
        await scene.it.write()
        assert not scene.state.written
        await scene.batch()
        await scene.it.write()
        assert scene.state.written == [{b"p/0": b"1"}]
        await scene.it.write()
        assert len(scene.state.written) == 1

    run(check())


def test_nothing_is_written_once_it_is_closed():
    async def check() -> None:
        scene = Scene()
        await scene.batch()
        later = scene.it._task
        assert later is not None
        scene.it.close()
        scene.lane.closed = True
        await asyncio.wait({later})
        await scene.it.write()
        assert (scene.state.written, scene.rebuilt) == ([], 0)
        with pytest.raises(Revoked):
            await scene.batch()

    run(check())


def test_a_write_that_ends_after_the_partition_went_away_is_no_failure():
    async def check() -> None:
        scene = Scene()
        scene.state.open.clear()
        await scene.batch()
        await until(lambda: scene.it._writing)
        scene.lane.closed = True
        scene.state.open.set()
        await until(lambda: scene.it._task is None)
        assert scene.state.written
        assert (scene.rebuilt, scene.lane.settled) == (0, 0)

    run(check())
