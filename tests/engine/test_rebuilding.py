"""A partition whose state cannot be written any more is built again once, and never taken up half-dead."""

import asyncio
from types import SimpleNamespace
from typing import Any

from faust.types import TP

from streams.engine import ChangelogFailed
from streams.engine.assignment import Assignments, _Kept

LOG = TP("log", 0)


class Owner(SimpleNamespace):
    """What `failed` uses of the assignments around it."""

    def __init__(self, state: Any) -> None:
        super().__init__(_states={LOG: state}, _rebuilding=set(), built=0)
        self.app = SimpleNamespace(consumer=SimpleNamespace(close_lanes=self.close_lanes))

    async def close_lanes(self, tp: TP) -> None:
        await asyncio.sleep(0.01)

    async def _close(self, tp: TP) -> None:
        self._states.pop(tp)
        await asyncio.sleep(0.01)

    def _bring_up_again(self, tp: TP, wait_s: float) -> None:
        self.built += 1


def test_a_batch_and_a_write_that_both_find_out_lead_to_one_rebuild():
    async def check() -> None:
        state: Any = SimpleNamespace(ended=ChangelogFailed("no ack"))
        owner: Any = Owner(state)
        await asyncio.gather(*(Assignments.failed(owner, LOG, state) for _ in range(3)))
        await Assignments.failed(owner, LOG, state)
        assert owner.built == 1
        again: Any = SimpleNamespace(ended=None)
        owner._states[LOG] = again
        await Assignments.failed(owner, LOG, state)
        assert owner.built == 1
        await Assignments.failed(owner, LOG, again)
        assert owner.built == 2

    asyncio.run(check())


def test_a_state_that_ended_during_a_rebalance_is_not_kept():
    state: Any = SimpleNamespace(ended=None)
    owner: Any = SimpleNamespace(_states={LOG: state})
    assert Assignments._is_usable(owner, LOG, _Kept(5, "", state))
    assert Assignments._is_usable(owner, LOG, _Kept(5, "id", None))
    state.ended = ChangelogFailed("no ack")
    assert not Assignments._is_usable(owner, LOG, _Kept(5, "", state))
    state.ended = None
    owner._states.clear()
    assert not Assignments._is_usable(owner, LOG, _Kept(5, "", state))
