"""Whether the judge and the embedder answer: asked once before the first evaluation, and again after they failed."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from streams.core.text import plain
from streams.errors import TgateError
from streams.evaluators.evaluation import MAX_REASON

logger = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 1.0
"""Between a failed probe and the next; each later pause is twice as long."""
LONGEST_PAUSE_S: Final = 300.0

Probe = Callable[[], Awaitable[object]]
"""Asks a part for something small; raises a TgateError where it does not answer."""


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A part stopped answering, or answers again: one journal entry."""

    part: str
    """`judge` or `embedder`."""
    healthy: bool
    reason: str
    """What a person should know, in one line."""


@dataclass(slots=True)
class _Part:
    probe: Probe
    probed: bool = False
    trouble: str | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    recovery: asyncio.Task[None] | None = None


class Health:
    """The parts of an evaluator. A part that does not answer is degraded: its scores are FAILED at once, with the reason."""

    def __init__(self, *, first_pause_s: float = FIRST_PAUSE_S, longest_pause_s: float = LONGEST_PAUSE_S) -> None:
        self._parts: dict[str, _Part] = {}
        self._first_pause_s, self._longest_pause_s = first_pause_s, longest_pause_s
        self._tell: Callable[[HealthChange], None] = lambda _: None

    def watch(self, name: str, probe: Probe) -> None:
        """Have a part probed before it is asked first."""
        self._parts[name] = _Part(probe)

    def listen(self, tell: Callable[[HealthChange], None]) -> None:
        """Have *tell* called, in the event loop, with each change from now on."""
        self._tell = tell

    @property
    def degraded(self) -> Mapping[str, str]:
        """The parts that do not answer, as last seen, with the reason."""
        return {name: part.trouble for name, part in self._parts.items() if part.trouble is not None}

    async def trouble(self, name: str) -> str | None:
        """Return why a part is degraded, None where it is not; probes it first where that has not been done.

        A part that nobody watches, such as a judge by rules, is never degraded.
        """
        if (part := self._parts.get(name)) is None:
            return None
        async with part.lock:
            if not part.probed:
                trouble = await _failing(part.probe)
                part.probed = True
                if trouble is not None:
                    self._degrade(name, part, trouble)
        return part.trouble

    def doubt(self, name: str) -> None:
        """Have a part probed before it is asked again: it has just failed."""
        self._parts[name].probed = self._parts[name].trouble is not None

    async def close(self) -> None:
        """Stop probing."""
        recoveries = [part.recovery for part in self._parts.values() if part.recovery is not None]
        for recovery in recoveries:
            recovery.cancel()
        await asyncio.gather(*recoveries, return_exceptions=True)

    def _degrade(self, name: str, part: _Part, trouble: str) -> None:
        part.trouble = trouble
        said = f"the {name} is degraded, its scores are FAILED until it answers: {trouble}"
        logger.warning("%s", said)
        self._tell(HealthChange(name, healthy=False, reason=said))
        part.recovery = asyncio.get_running_loop().create_task(self._recover(name, part), name=f"probe of the {name}")

    async def _recover(self, name: str, part: _Part) -> None:
        pause_s = self._first_pause_s
        while part.trouble is not None:
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))  # noqa: S311
            pause_s = min(pause_s * 2, self._longest_pause_s)
            part.trouble = await _failing(part.probe)
        said = f"the {name} answers again"
        logger.warning("%s", said)
        self._tell(HealthChange(name, healthy=True, reason=said))


async def _failing(probe: Probe) -> str | None:
    try:
        await probe()
    except TgateError as error:
        return plain(str(error), MAX_REASON)
    except Exception as error:
        # A bug. Raised, it would end the probing and leave the part degraded for ever.
        logger.exception("a probe failed in a way that it should not")
        return plain(f"{type(error).__name__}: {error}", MAX_REASON)
    return None
