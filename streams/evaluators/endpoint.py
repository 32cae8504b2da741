"""One OpenAI-compatible endpoint: bounded requests, timeouts, and three attempts that honour what it asks for."""

import asyncio
import importlib
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import SecretStr

from streams.errors import EndpointFailed, PartMissing
from streams.evaluators.refusals import Refusal, Refusals

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ATTEMPTS: Final = 3
"""Requests made in all for one answer."""
MAX_WAIT_S: Final = 60.0
"""An endpoint that wants to be left alone for longer is not waited for."""
BACKOFF_S: Final = 0.5
"""About how long the second attempt is put off; each later one twice as long."""

T = TypeVar("T")
R = TypeVar("R")


class Endpoint:
    """Where a judge or an embedder answers.

    Raises:
        PartMissing: the package that talks to it is not installed.
    """

    def __init__(
        self,
        section: str,
        base_url: str,
        key: SecretStr | None,
        *,
        timeout_s: float,
        limit: asyncio.Semaphore,
        backoff_s: float = BACKOFF_S,
        on_down: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; nothing is sent yet.

        section: the prefix of its settings, which messages name.
        limit: requests that it is sent at once; shared with others at the same address.
        on_down: called when it failed in a way that puts the whole endpoint in doubt, not one request.
        """
        try:
            # Only who asks for an endpoint needs the package.
            importlib.import_module("openai")
        except ImportError as error:
            raise PartMissing(
                f"a model at {base_url} needs {error.name}: pip install 'trajectory-gate[judge]'"
            ) from error
        self._base_url, self._key = base_url, key
        self._timeout_s, self._limit, self._backoff_s = timeout_s, limit, backoff_s
        self._refusals = Refusals(section, timeout_s, key.get_secret_value() if key else "")
        self._on_down = on_down
        self._quiet_until = 0.0
        self._made: AsyncOpenAI | None = None

    async def ask(
        self, send: "Callable[[AsyncOpenAI, str], Awaitable[T]]", read: Callable[[T], R], *, probe: bool = False
    ) -> R:
        """Send a request until *read* takes the answer, ATTEMPTS times at most.

        send: makes the request; it gets what was wrong with the answer before, empty at first.
        read: raises Unusable for an answer that cannot be used.
        probe: everything waits for this answer, so that a silent endpoint is not asked again.

        Raises:
            EndpointFailed: no attempt had a usable answer, or another one would not help.
        """
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            await self._keep_quiet()
            try:
                return read(await self._once(send, problem))
            except Exception as error:
                if (refusal := self._refusals.of(error)) is None:
                    raise
            problem = refusal.problem
            self._quiet_until = max(self._quiet_until, _now() + refusal.wait_s)
            if not refusal.transient or attempt == ATTEMPTS or (probe and refusal.silent):
                raise self._failed(refusal, attempt)
            # Spread, so that requests that failed together do not come back together.
            await asyncio.sleep(self._backoff_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))  # noqa: S311
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await self._made.close()

    async def _once(self, send: "Callable[[AsyncOpenAI, str], Awaitable[T]]", problem: str) -> T:
        # Waiting for its turn is not the endpoint's time.
        async with self._limit, asyncio.timeout(self._timeout_s):
            return await send(self._client(), problem)

    def _client(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI  # noqa: PLC0415  (an extra)

        if self._made is None:
            # Without a key the package would take one from the environment, and send it to this address.
            key = self._key.get_secret_value() if self._key else "none"
            self._made = AsyncOpenAI(api_key=key, base_url=self._base_url, max_retries=0, timeout=None)
        return self._made

    async def _keep_quiet(self) -> None:
        """Wait while the endpoint wants to be left alone: it means all requests, not only the one that it refused."""
        while (wait_s := self._quiet_until - _now()) > 0:
            if wait_s > MAX_WAIT_S:
                raise EndpointFailed(
                    f"{self._base_url} wants to be left alone for another {wait_s:.0f} s (Retry-After)"
                )
            await asyncio.sleep(wait_s + self._backoff_s * random.random())  # noqa: S311

    def _failed(self, refusal: Refusal, attempts: int) -> EndpointFailed:
        if refusal.down:
            self._on_down()
        tried = f" (tried {attempts} times)" if attempts > 1 else ""
        return EndpointFailed(f"{self._base_url} {refusal.reason}{tried}", status=refusal.status)


def _now() -> float:
    return asyncio.get_running_loop().time()
