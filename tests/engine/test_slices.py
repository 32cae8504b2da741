"""Batches compute one at a time, in order, and answers that come meanwhile are heard."""

import asyncio
import time

import pytest

from streams.engine import slices
from streams.engine.slices import SLICE_S, Slices


def test_one_computes_at_a_time_and_in_order():
    async def check() -> None:
        shared, done = Slices(), []

        def work(item: tuple[str, int]) -> None:
            done.append(item)
            time.sleep(SLICE_S / 2)

        await asyncio.gather(*(shared.each([(name, number) for number in range(9)], work) for name in "ab"))
        assert done == [(name, number) for name in "ab" for number in range(9)]

    asyncio.run(check())


def test_who_has_the_highest_rank_goes_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slices, "PATIENCE_S", 1e9)

    async def check() -> None:
        shared, done = Slices(), []

        def work(item: str) -> None:
            done.append(item)
            time.sleep(SLICE_S)

        ranks = {"first": 0, "low": 0, "high": 2, "high too": 2, "middle": 1}
        tasks = {name: asyncio.ensure_future(shared.each([name, name], work, rank)) for name, rank in ranks.items()}
        await asyncio.sleep(0)
        tasks["high"].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert done[::2] == ["first", "high too", "middle", "low"]
        await shared.each(["after"], work)

    asyncio.run(asyncio.wait_for(check(), 60))


def test_who_has_waited_for_long_goes_before_any_rank(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slices, "PATIENCE_S", 0.05)

    async def check() -> None:
        shared, done = Slices(), []
        starving = asyncio.Event()

        async def later_stage(name: str) -> None:
            while not starving.is_set():
                await shared.each([name] * 5, lambda item: (done.append(item), time.sleep(0.01)))
                await asyncio.sleep(0)

        busy = [asyncio.ensure_future(later_stage(name)) for name in "ab"]
        await asyncio.sleep(0)
        await shared.each(["first stage"], done.append, rank=-1)
        starving.set()
        await asyncio.gather(*busy)
        assert "first stage" in done

    asyncio.run(asyncio.wait_for(check(), 60))


def test_others_are_heard_before_the_work_is_through():
    async def check() -> None:
        done: list[int] = []
        heard: list[int] = []

        def work(item: int) -> None:
            done.append(item)
            time.sleep(SLICE_S)

        asyncio.get_running_loop().call_soon(lambda: heard.append(len(done)))
        await Slices().each(range(5), work)
        assert heard[0] < len(done) == 5

    asyncio.run(check())


def test_work_that_fails_leaves_the_turn_to_the_next():
    async def check() -> None:
        shared, done = Slices(), []
        with pytest.raises(ZeroDivisionError):
            await shared.each([1, 0, 1], lambda item: done.append(1 // item))
        await shared.each([2, 3], done.append)
        assert done == [1, 2, 3]

    asyncio.run(check())
