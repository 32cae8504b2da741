"""The gate for programs without an event loop: the same words, each waiting for its answer."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from streams.client.gate import DRAIN_S, FLUSH_S, Gate
from streams.client.recorder import TraceRecorder
from streams.client.sender import Counts
from streams.client.settlement import Settlement
from streams.client.subscription import Since, Start, Subscription
from streams.core.model import NeedsHuman, Notice
from streams.reading import R
from streams.settings import Settings

T = TypeVar("T")


class BlockingGate:
    """Used as `with BlockingGate() as gate`; takes what Gate takes. The gate runs in a thread of its own."""

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._gate: Gate
        self._settings, self._options = settings, options
        self._thread = threading.Thread(target=self._loop.run_forever, name="tgate", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._gate = self._wait(self._begin())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(self._gate.close())
        finally:
            self._end()

    @property
    def settings(self) -> Settings:
        return self._gate.settings

    @property
    def counts(self) -> Counts:
        """See Gate.counts."""
        return self._gate.counts

    def trace(self, session: str, name: str = "turn", **fields: Any) -> TraceRecorder:
        """Return a trace to be entered with `with`; see Gate.trace."""
        recorder = self._gate.trace(session, name, **fields)
        submit = recorder.submit

        async def published(it: TraceRecorder) -> None:
            await submit(it)

        recorder.offer = lambda it: self._wait(published(it))
        return recorder

    def submit_score(
        self, session: str, metric: str, value: float | bool | str | None, trace: str | None = None, **fields: Any
    ) -> bool:
        """See Gate.submit_score."""
        return self._wait(self._gate.submit_score(session, metric, value, trace, **fields))

    def submit_trace(self, fields: dict[str, Any]) -> bool:
        """See Gate.submit_trace."""
        return self._wait(self._gate.submit_trace(fields))

    def flush(self, timeout: float = FLUSH_S) -> bool:
        """See Gate.flush."""
        return self._wait(self._gate.flush(timeout))

    def settle(self, session: str, turn: str | None = None, timeout: float | None = None) -> Settlement:
        """See Gate.settle."""
        return self._wait(self._gate.settle(session, turn, timeout))

    def pending_sessions(self) -> dict[str, tuple[str, ...]]:
        """See Gate.pending_sessions."""
        return self._wait(self._gate.pending_sessions())

    def drain(self, timeout: float = DRAIN_S) -> dict[str, tuple[str, ...]]:
        """See Gate.drain."""
        return self._wait(self._gate.drain(timeout))

    def notices(self, session: str | None = None, since: Start = Since.LATEST) -> "BlockingSubscription[Notice]":
        """Follow notices; see Gate.notices."""

        async def begin() -> Subscription[Notice]:
            return self._gate.notices(session, since)

        return BlockingSubscription(self, self._wait(begin()))

    def needs_human(
        self, project: str | None = None, since: Start = Since.LATEST
    ) -> "BlockingSubscription[NeedsHuman]":
        """Follow the calls for a person; see Gate.needs_human."""

        async def begin() -> Subscription[NeedsHuman]:
            return self._gate.needs_human(project, since)

        return BlockingSubscription(self, self._wait(begin()))

    async def _begin(self) -> Gate:
        return await Gate(self._settings, **self._options).__aenter__()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingSubscription(Generic[R]):
    """Iterate it with `for`, or `take` what has come; `with` waits until it has begun, and ends it."""

    def __init__(self, gate: BlockingGate, inner: Subscription[R]) -> None:
        self._gate, self._inner = gate, inner

    def __enter__(self) -> Self:
        self._gate._wait(self._inner.__aenter__())  # noqa: SLF001  (the two are one thing in two classes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        try:
            return self._gate._wait(self._inner.__anext__())  # noqa: SLF001
        except StopAsyncIteration:
            raise StopIteration from None

    def take(self) -> list[R]:
        """Return what has come and was not returned before, without waiting."""

        async def taken() -> list[R]:
            return self._inner.take()

        return self._gate._wait(taken())  # noqa: SLF001

    def close(self) -> None:
        """End the subscription."""
        self._gate._wait(self._inner.aclose())  # noqa: SLF001
