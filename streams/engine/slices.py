"""Lets batches compute one at a time and a few milliseconds at once, so that nobody waits long for the event loop."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_T = TypeVar("_T")

SLICE_S: Final = 0.003
"""Long beside what a pause costs, short beside what an answer from a broker takes."""


class Slices:
    """Shared by all batches of a worker.

    A batch waits for several answers, one after the other, and each of them for the event loop. If all batches
    computed side by side, each answer would wait for the work of all of them; batches would grow meanwhile, and take
    the longer the more records they have. So one computes while the others wait for the network or for their turn.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def each(self, items: Iterable[_T], work: Callable[[_T], None]) -> None:
        """Call *work* with each item, in order, and let others in whenever the slice is used up."""
        async with self._turn:
            until = time.perf_counter() + SLICE_S
            for item in items:
                work(item)
                if time.perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = time.perf_counter() + SLICE_S
