"""Runs the monitor and the listener in a thread of their own, so that what they watch cannot stop them."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import faust
import structlog
from mode import Service

from streams.engine import Offsets, Stage, Standing, standing
from streams.health.listener import Listener, bind
from streams.health.monitor import Monitor
from streams.metrics import Metrics
from streams.settings import Settings

log = structlog.get_logger(__name__)

EXIT_STALLED: Final = 1
LOOK_S: Final = 5.0
LOOKS_BEFORE_A_WARNING: Final = 6
STOP_S: Final = 5.0


class LoopPulse:
    """Asks the app's loop to say where the app stands; a loop that does not turn does not answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[[], Standing]) -> None:
        self._loop = loop
        self._tell = tell
        self.asked = self.answered = 0
        self.standing = Standing()

    def ask(self) -> None:
        """Ask, unless the last question is open."""
        if self.asked == self.answered:
            self.asked += 1
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self.answered = self.asked
        self.standing = self._tell()


class Health(Service):  # type: ignore[misc]
    """Part of the app: starts before the partitions are recovered and stops after the last batch.

    Raises:
        BadSettings: at once, when the port cannot be had.
    """

    mundane_level = "debug"

    def __init__(
        self, settings: Settings, app: faust.App, stages: Sequence[Stage], offsets: Offsets, metrics: Metrics
    ) -> None:
        super().__init__()
        self._limits = (settings.stall_warn_s, settings.stall_exit_s)
        self._app = app
        self._stages = stages
        self._offsets = offsets
        self._metrics = metrics
        self._taken = None if settings.health_port is None else bind(settings.health_host, settings.health_port)
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)
        self._end: Callable[[], object] = lambda: None

    async def on_start(self) -> None:
        """Begin to watch the loop that this runs in."""
        self._pulse = LoopPulse(asyncio.get_running_loop(), lambda: standing(self._app))
        self._thread.start()

    async def on_stop(self) -> None:
        """Stop watching; the thread gets a moment to close its connections."""
        with suppress(RuntimeError):  # it has ended
            self._end()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, STOP_S)
        if self._taken is not None:
            self._taken.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except asyncio.CancelledError:
            """The app stops."""
        except Exception:
            log.exception("watch_ended", hint="the worker works on, but nobody watches it")

    async def _watch(self) -> None:
        watching = asyncio.current_task()
        assert watching is not None
        self._end = partial(asyncio.get_running_loop().call_soon_threadsafe, watching.cancel)
        monitor = Monitor(self._stages, self._pulse, self._offsets, self._metrics, self._limits, _end_process)
        listener = Listener(self._taken, monitor.status, self._metrics.registry) if self._taken else None
        if listener is not None:
            await listener.start()
            log.info("health", url=listener.url, answers="/live /ready /metrics")
        try:
            await self._look_again_and_again(monitor)
        finally:
            if listener is not None:
                await listener.stop()
            await self._offsets.stop()

    async def _look_again_and_again(self, monitor: Monitor) -> None:
        pause_s = min(LOOK_S, self._limits[0] / LOOKS_BEFORE_A_WARNING)
        while True:
            try:
                await monitor.look(time.monotonic())
            except Exception:
                log.exception("not_looked", hint="trying again")
            await asyncio.sleep(pause_s)


def _end_process() -> None:
    """End as it stands: what hangs would not stop in good order, and nothing is lost that was not acknowledged."""
    os._exit(EXIT_STALLED)
