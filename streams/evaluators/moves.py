"""Lets coroutines wait until a stage has moved on."""

import asyncio
from contextlib import suppress
from typing import Final

LOOK_S: Final = 0.5
"""How long a wait lasts at most: what it waits for may also come by time."""


class Moves:
    """Told whenever something has changed; who waits looks for himself what it was."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        """Wake everyone who waits."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait(self, longest_s: float = LOOK_S) -> None:
        """Return after the next change, or after *longest_s*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._next.wait()
