"""Lets batches compute one at a time and a few milliseconds at once, so that nobody waits long for the event loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

_T = TypeVar("_T")

SLICE_S: Final = 0.003
"""Long beside what a pause costs, short beside what an answer from a broker takes."""
PATIENCE_S: Final = 1.0
"""After so long a wait rank does not count: a later stage with a backlog must not stop the first one."""


class Slices:
    """Shared by all batches of a worker.

    A batch waits for several answers, one after the other, and each of them for the event loop. If all batches
    computed side by side, each answer would wait for the work of all of them; batches would grow meanwhile, and take
    the longer the more records they have. So one computes while the others wait for the network or for their turn.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: list[tuple[int, float, asyncio.Future[None]]] = []

    async def each(self, items: Iterable[_T], work: Callable[[_T], None], rank: int = 0) -> None:
        """Call *work* with each item, in order, and let others in whenever the slice is used up.

        rank: who waits with a higher one goes first, but for who has waited for too long; of equal ones, who came first.
        """
        async with self._turn(rank):
            until = time.perf_counter() + SLICE_S
            for item in items:
                work(item)
                if time.perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = time.perf_counter() + SLICE_S

    @asynccontextmanager
    async def _turn(self, rank: int) -> AsyncIterator[None]:
        if self._is_taken:
            called = asyncio.get_running_loop().create_future()
            self._waiting.append((rank, time.monotonic(), called))
            try:
                await called
            except asyncio.CancelledError:
                if called.done() and not called.cancelled():
                    self._pass_on()
                raise
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give the turn to the next one, which has it from now on, or to nobody."""
        self._is_taken = False
        # In the order in which they came.
        self._waiting = [waiter for waiter in self._waiting if not waiter[2].done()]
        if not self._waiting:
            return
        chosen = self._waiting[0]
        if time.monotonic() - chosen[1] < PATIENCE_S:
            chosen = max(self._waiting, key=lambda waiter: waiter[0])
        self._waiting.remove(chosen)
        self._is_taken = True
        chosen[2].set_result(None)
