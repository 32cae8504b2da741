"""Runs an app until it is told to stop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import faust


class _Worker(faust.Worker):  # type: ignore[misc]
    """Faust's worker without the second it sleeps before it ends."""

    async def _sentinel_task(self) -> None:
        """Let the loop turn once more."""
        await asyncio.sleep(0)


def run_worker(make_app: Callable[[], Coroutine[Any, Any, faust.App]], *, loglevel: str | None = None) -> NoReturn:
    """Make an app and run it until SIGTERM or SIGINT, then drain, commit and leave the group.

    make_app: called in the loop the app will run in, for instance to ask for the broker's abilities.
    loglevel: sets up Faust's logging; None leaves logging as it is.

    Raises SystemExit, and what make_app raises.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    app = loop.run_until_complete(make_app())
    worker = _Worker(app, loop=loop, loglevel=loglevel, override_logging=loglevel is not None, redirect_stdouts=False)
    worker.execute_from_commandline()
    raise SystemExit
