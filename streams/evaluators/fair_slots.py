"""Bounded work shared out fairly: no session holds up the others, no run of its own holds up the ladder."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

SHARE: Final = 4
"""A session gets at most one slot in so many."""


class FairSlots:
    """So many pieces of work at once; sessions take turns.

    Work that is urgent goes first, but where any other waits, one slot is for that.
    """

    def __init__(self, total: int) -> None:
        """*total*: at least 1."""
        self._free = total
        self._spare = 1 if total > 1 else 0
        self._most = max(1, total // SHARE)
        self._holding: Counter[str] = Counter()
        self._patient_holding = 0
        self._waiting: dict[bool, dict[str, deque[asyncio.Future[None]]]] = {True: {}, False: {}}
        """Urgent or not -> session -> who waits, in the order in which sessions have their turns."""

    @asynccontextmanager
    async def slot(self, session_id: str, *, urgent: bool) -> AsyncIterator[None]:
        """Hold a slot while the block lasts."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting[urgent].setdefault(session_id, deque()).append(turn)
        self._hand_out()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._give_back(session_id, urgent=urgent)
            else:
                self._leave(session_id, turn, urgent=urgent)
            self._hand_out()

    def _hand_out(self) -> None:
        while self._free and (chosen := self._choose()) is not None:
            session_id, urgent = chosen
            waiting = self._waiting[urgent]
            turns = waiting.pop(session_id)
            turn = turns.popleft()
            if turns:
                waiting[session_id] = turns  # behind the others
            if turn.cancelled():
                continue
            self._free -= 1
            self._holding[session_id] += 1
            self._patient_holding += not urgent
            turn.set_result(None)

    def _choose(self) -> tuple[str, bool] | None:
        """Return the session whose turn it is, and whether for urgent work."""
        first = not self._waiting[False] or self._patient_holding >= self._spare
        for urgent in (first, not first):
            for session_id in self._waiting[urgent]:
                if self._holding[session_id] < self._most:
                    return session_id, urgent
        return None

    def _give_back(self, session_id: str, *, urgent: bool) -> None:
        self._free += 1
        self._patient_holding -= not urgent
        self._holding[session_id] -= 1
        if not self._holding[session_id]:
            del self._holding[session_id]

    def _leave(self, session_id: str, turn: "asyncio.Future[None]", *, urgent: bool) -> None:
        """Stop waiting."""
        waiting = self._waiting[urgent]
        if turn in (turns := waiting.get(session_id, deque())):
            turns.remove(turn)
            if not turns:
                del waiting[session_id]
