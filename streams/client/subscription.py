"""Follows notices or calls for a person: an async iterator that begins where asked and says each once."""

import asyncio
import logging
from collections.abc import Callable, Hashable
from contextlib import aclosing
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import Final, Generic, Self

from aiokafka import TopicPartition

from streams import reading
from streams.client.reach import Reach
from streams.engine import Offsets
from streams.errors import BrokerUnavailable
from streams.reading import Kind, Place, R
from streams.wire import Wire

logger = logging.getLogger(__name__)

PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 15.0
REMEMBERED: Final = 100_000
QUEUE: Final = 1_000


class Since(StrEnum):
    """Where a subscription begins."""

    LATEST = "latest"
    """With what is published after it was asked for."""
    EARLIEST = "earliest"
    """With the oldest that is kept."""


Start = Since | str | datetime | int
"""A Since or its word, a time (without a zone: UTC), or milliseconds since 1970."""


class Subscription(Generic[R]):
    """Iterate it with `async for`, or `take` what has come. `async with` waits until it has begun, and ends it.

    A broker that is away is waited for. Without one at the beginning, `latest` is when it comes back.
    """

    def __init__(
        self, reach: Reach, wire: Wire, kind: Kind[R], key: str | None, since: Start, wanted: Callable[[R], bool]
    ) -> None:
        self._reach, self._wire, self._kind, self._wanted = reach, wire, kind, wanted
        self._key = None if key is None else key.encode("utf-8", "surrogatepass")
        self._since = since
        self._since_ms = _milliseconds(since)
        self._seen: dict[Hashable, None] = {}
        # Reading stops while the queue is full: who is slow reads late, and misses nothing.
        self._queue: asyncio.Queue[R] = asyncio.Queue(QUEUE)
        self._begun = asyncio.Event()
        self._task: asyncio.Task[None] | None = asyncio.create_task(self._run(), name=f"tgate-{kind.role}")
        self.trouble: str | None = None

    async def __aenter__(self) -> Self:
        await self._begun.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> R:
        if not self._queue.empty():
            return self._queue.get_nowait()
        if self._task is None:
            raise StopAsyncIteration
        # The wait may be cancelled, by a timeout for one, and begun again: nothing is lost.
        item = asyncio.ensure_future(self._queue.get())
        try:
            await asyncio.wait({item, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if item.done():
                return item.result()
        finally:
            item.cancel()
        raise StopAsyncIteration

    @property
    def alive(self) -> bool:
        """Whether it has not been ended."""
        return self._task is not None

    def take(self) -> list[R]:
        """Return what has come and was not returned before, without waiting."""
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]

    async def aclose(self) -> None:
        """End the subscription."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=PAUSE_S * 5)

    async def _run(self) -> None:
        """Find the topic and where to begin, then read; whatever goes wrong is tried again from the same place."""
        pause = PAUSE_S
        begin: tuple[Place, dict[int, int] | None] | None = None
        while True:
            try:
                if begin is None:
                    (place,) = await reading.locate(self._reach.settings, self._kind.role, key=self._key)
                    begin = place, await _ends(place, self._reach) if self._since == Since.LATEST else None
                self._begun.set()
                await self._read(*begin)
            except Exception as error:  # noqa: BLE001  (the agent hears nothing, rather than an error)
                self._say_trouble(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _read(self, place: Place, start: dict[int, int] | None) -> None:
        pages = reading.outputs(place, self._kind, self._wire, since_ms=self._since_ms, start=start, follow=True)
        async with aclosing(pages) as read:
            async for page in read:
                if page.away:
                    self._say_trouble(BrokerUnavailable("the broker does not answer"))
                else:
                    self.trouble = None
                for item in page.values:
                    if self._wanted(item) and self._is_new(item):
                        await self._queue.put(item)

    def _is_new(self, item: R) -> bool:
        identity = self._kind.identity(item)
        if identity in self._seen:
            return False
        self._seen[identity] = None
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return True

    def _say_trouble(self, error: Exception) -> None:
        if self.trouble is None:
            logger.warning("%s cannot be read at present: %s", self._kind.role, str(error) or repr(error))
        self.trouble = str(error) or repr(error)


async def _ends(place: Place, reach: Reach) -> dict[int, int]:
    offsets = Offsets(place.connection, lists_ends=await reach.fences())
    try:
        ends = await offsets.end_offsets([TopicPartition(place.topic, number) for number in place.partitions])
    finally:
        await offsets.stop()
    return {tp.partition: end for tp, end in ends.items()}


def _milliseconds(since: Start) -> int | None:
    """Return a time as milliseconds; none for a Since.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(since, datetime):
        zoned = since if since.tzinfo is not None else since.replace(tzinfo=UTC)
        return int(zoned.timestamp() * 1000)
    if isinstance(since, int):
        return since
    Since(since)
    return None
