"""Slots are bounded, sessions take turns, and neither a session nor a run of its own holds up the others."""

import asyncio
from collections import Counter

import pytest

from streams.evaluators.fair_slots import FairSlots


class Crowd:
    """Work that holds its slot until it is let go."""

    def __init__(self, total):
        self.slots = FairSlots(total)
        self.inside = []
        self.tasks = {}

    def come(self, name, session, *, urgent=True):
        async def work():
            async with self.slots.slot(session, urgent=urgent):
                self.inside.append(name)
                try:
                    await asyncio.Event().wait()
                finally:
                    self.inside.remove(name)

        self.tasks[name] = asyncio.ensure_future(work())

    async def leave(self, name):
        self.tasks[name].cancel()
        await self.turn()

    async def turn(self):
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self):
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


def trying(total):
    """Run a test's coroutine with a crowd."""

    def decorate(test):
        def run():
            async def whole():
                crowd = Crowd(total)
                await test(crowd)
                await crowd.end()
                assert crowd.slots._free == total
                assert not crowd.slots._holding
                assert crowd.slots._patient_holding == 0

            asyncio.run(whole())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


@trying(8)
async def test_a_session_gets_its_share_and_no_more(crowd):
    for number in range(20):
        crowd.come(f"a{number}", "a")
    await crowd.turn()
    assert crowd.inside == ["a0", "a1"]
    crowd.come("b0", "b")
    await crowd.turn()
    assert crowd.inside == ["a0", "a1", "b0"]
    await crowd.leave("a0")
    assert crowd.inside == ["a1", "b0", "a2"]


@trying(4)
async def test_sessions_take_turns_when_all_is_taken(crowd):
    for name in ("a", "b", "c", "d"):
        crowd.come(f"{name}0", name)
    for name in ("e1", "e2", "f1", "a1"):
        crowd.come(name, name[0])
    await crowd.turn()
    assert crowd.inside == ["a0", "b0", "c0", "d0"]
    for name in ("b0", "c0", "d0"):
        await crowd.leave(name)
    assert crowd.inside == ["a0", "e1", "f1"]
    await crowd.leave("e1")
    assert crowd.inside == ["a0", "f1", "e2"]


@trying(4)
async def test_the_ladder_goes_first_but_other_runs_keep_one_slot(crowd):
    for number in range(6):
        crowd.come(f"run{number}", f"r{number}", urgent=False)
    await crowd.turn()
    assert len(crowd.inside) == 4
    for number in range(6):
        crowd.come(f"live{number}", f"s{number}")
    for number in range(3):
        await crowd.leave(f"run{number}")
    assert crowd.inside == ["run3", "live0", "live1", "live2"]
    await crowd.leave("run3")
    assert crowd.inside == ["live0", "live1", "live2", "run4"]
    await crowd.leave("live0")
    assert crowd.inside == ["live1", "live2", "run4", "live3"]


@trying(1)
async def test_one_slot_serves_all(crowd):
    crowd.come("run", "r", urgent=False)
    await crowd.turn()
    crowd.come("live", "s")
    crowd.come("next", "r2", urgent=False)
    await crowd.leave("run")
    assert crowd.inside == ["live"]
    await crowd.leave("live")
    assert crowd.inside == ["next"]


@trying(2)
async def test_who_stops_waiting_takes_no_slot(crowd):
    for name in "abcd":
        crowd.come(name, name)
    await crowd.turn()
    crowd.tasks["c"].cancel()
    await crowd.leave("a")
    assert crowd.inside == ["b", "d"]


@pytest.mark.parametrize("total", [1, 3, 16])
def test_all_get_their_turn_and_never_too_many_at_once(total):
    async def whole():
        slots, inside, done = FairSlots(total), Counter(), Counter()

        async def work(session, urgent):
            async with slots.slot(session, urgent=urgent):
                inside[session] += 1
                assert inside.total() <= total
                assert inside[session] <= max(1, total // 4)
                await asyncio.sleep(0.001)
                inside[session] -= 1
            done[session] += 1

        await asyncio.gather(*(work(f"s{number % 7}", number % 3 == 0) for number in range(140)))
        assert set(done.values()) == {20}

    asyncio.run(whole())
