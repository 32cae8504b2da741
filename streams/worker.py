"""The worker as a process: runs the Faust app until a signal or a crash, and says which it was."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final

import faust
import structlog
from aiokafka.errors import KafkaError

from streams.app import build
from streams.errors import TgateError
from streams.readiness import Ready, prepare
from streams.settings import Settings
from streams.topics import DETECTION

log = structlog.get_logger(__name__)

START_TRIES, START_PAUSE_S = 5, 1.0
EXIT_CRASHED: Final = 1
EXIT_INTERRUPTED: Final = 130
STOP_S: Final = 60.0
"""How long a stop may take: the drain, then some seconds for each good-bye that a broker does not answer."""


class GateWorker(faust.Worker):  # type: ignore[misc]
    """Faust's worker without its spinner, its logging set-up and its debugger on a signal."""

    def __init__(self, app: faust.App, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        super().__init__(app, loop=loop, quiet=True, redirect_stdouts=False, override_logging=False)
        self.spinner = None
        self._on_ready = on_ready
        self._signals = 0

    async def on_startup_finished(self) -> None:
        """Say that every partition of the first assignment is being read."""
        await super().on_startup_finished()
        if not (self._signals or self.should_stop):
            self._on_ready()

    def install_signal_handlers(self) -> None:
        """Drain at the first SIGINT or SIGTERM; a second one ends the process as it stands."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self.loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        self._signals += 1
        if self._signals > 1:
            # Nothing is lost: what was not acknowledged is read again by the next worker.
            os._exit(EXIT_INTERRUPTED)
        log.info("stopping", signal=number.name, hint="what is under way is finished first; once more ends it at once")
        self._limit_stop()
        self._flag_as_shutdown_by_signal()
        self._schedule_shutdown(number)

    def on_worker_shutdown(self) -> None:
        """Stop after a crash in good order too, as far as that goes."""
        if not self._signals:
            self._limit_stop()

    def _limit_stop(self) -> None:
        self.loop.call_later(STOP_S, self._give_up)

    def _give_up(self) -> None:
        log.error(
            "not_stopped", seconds=STOP_S, hint="ended as it stands; the next worker reads on from what is stored"
        )
        os._exit(EXIT_CRASHED)

    def _setproctitle(self, info: str, *, ident: str = "tgate") -> None:
        super()._setproctitle(info, ident=ident)

    def _sentinel_task(self) -> Coroutine[Any, Any, None]:
        """Let the loop turn once more before it closes; Faust sleeps a second here."""
        return asyncio.sleep(0)


Build = Callable[[Settings, Ready], faust.App]


def run(
    settings: Settings, on_ready: Callable[[], None], make: Build | None = None, roles: Collection[str] = DETECTION
) -> int:
    """Run one worker in this thread and return its exit code: 0 after a signal, 1 after a crash.

    make: its app; none: detection's. roles: the topics that it uses, by default name.

    Raises:
        TopicsWrong: topics are missing or wrong; nothing was started.
        KafkaError: no broker answers.
        UnreadableState: a stored state cannot be read by this version; the worker has stopped.
    """
    ready = asyncio.run(_prepared(settings, roles))
    return run_app(lambda: (make or build)(settings, ready), on_ready)


async def _prepared(settings: Settings, roles: Collection[str]) -> Ready:
    """Prepare; a broker that does not answer is asked again for a while: another of its cluster may, or it comes back."""
    for attempt in range(1, START_TRIES):
        try:
            return await prepare(settings, roles)
        except (KafkaError, TimeoutError) as error:
            log.warning("broker_away", error=str(error) or repr(error), attempt=attempt, hint="asking again")
            await asyncio.sleep(START_PAUSE_S)
    return await prepare(settings, roles)


def _tune_memory() -> None:
    """Look for garbage less often: next to nothing here is in cycles, and each look goes through what is held."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def run_app(make: Callable[[], faust.App], on_ready: Callable[[], None]) -> int:
    """Make an app in a loop of its own, run it, and return the exit code as `run` does.

    Raises:
        TgateError: the app ended with it, on purpose.
    """
    _tune_memory()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    worker = GateWorker(make(), loop, on_ready)
    try:
        worker.execute_from_commandline()
    except SystemExit as ending:
        if isinstance(worker.crash_reason, TgateError):
            raise worker.crash_reason from None
        return int(ending.code or 0)
    return 0
