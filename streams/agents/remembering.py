"""Stores what a fold has come to now and then, beside its batches: one write for many of them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from streams.engine import Batch, PartitionState, Revoked
from streams.tables import Changes

log = structlog.get_logger(__name__)

INTERVAL_S: Final = 0.5
"""Between two writes. What was folded since the last is folded again after a kill, and its outputs are repeats."""


class Remembering:
    """What one partition has published and not stored yet.

    A write takes several answers of the broker, however little is in it. If each batch waited for one of its own, a
    record would wait for the batch before it, and small batches would keep the broker busy with nothing else.

    turn: held by whoever folds, so that a write has in it what was published, and nothing else.
    """

    def __init__(self, state: PartitionState, take: Callable[[], Changes], rebuild: Callable[[], None]) -> None:
        """Write what *take* returns; call *rebuild* when that failed."""
        self.turn = asyncio.Lock()
        self._state = state
        self._take = take
        self._rebuild = rebuild
        self._last: Batch | None = None
        self._writing: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None

    def published(self, batch: Batch) -> None:
        """All outputs of the batch are acknowledged; its turn is not over yet.

        Raises Revoked when the partition is not this worker's any more, or what a write before has failed with.
        """
        self._check()
        batch.published()
        self._last = batch
        if self._task is None:
            self._task = asyncio.ensure_future(self._later())

    async def write(self) -> None:
        """Store what was published until now, and say that it is settled.

        Raises EngineError when it could not be stored; the partition is then built again.
        """
        async with self.turn:
            self._check()
            last, self._last = self._last, None
            if last is not None:
                self._writing = asyncio.ensure_future(self._store(self._taken(), last))
                self._writing.add_done_callback(_see)
            writing = self._writing
        if writing is not None:
            # Shielded: whoever stops waiting must not leave a write half-way.
            await asyncio.shield(writing)

    def _check(self) -> None:
        """Write nothing after a write that failed: what was taken for it would be left out."""
        if self._failure is not None:
            raise self._failure

    def _taken(self) -> Changes:
        try:
            return self._take()
        except Exception as error:
            self._failure = error
            raise

    async def _store(self, changes: Changes, last: Batch) -> None:
        try:
            await self._state.commit(changes)
        except Exception as error:
            self._failure = error
            raise
        with suppress(Revoked):  # it is stored all the same, and the next owner reads on from there
            last.done()

    async def forget(self) -> None:
        """Give up what is not stored, and wait for the write under way: the fold starts again from what that stores.

        To be called in turn, when folding has failed.
        """
        self._last = None
        if self._writing is not None:
            await asyncio.wait({self._writing})

    def close(self) -> None:
        """Write nothing more."""
        self._last = None
        if self._task is not None:
            self._task.cancel()

    async def _later(self) -> None:
        try:
            while self._last is not None:
                await asyncio.sleep(INTERVAL_S)
                await self.write()
        except Revoked as error:
            log.info("not_remembered", table=self._state.table, partition=self._state.partition, reason=str(error))
            self._rebuild()
        except Exception as error:  # noqa: BLE001  (whatever it is, the state is built again from what is stored)
            log.warning("not_remembered", table=self._state.table, partition=self._state.partition, error=repr(error))
            self._rebuild()
        finally:
            self._task = None


def _see(task: "asyncio.Task[None]") -> None:
    """Mark a failure as seen, also when nobody waits for it any more."""
    if not task.cancelled():
        task.exception()
