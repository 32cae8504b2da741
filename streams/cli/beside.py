"""An evaluators' worker beside this process: with the same settings, watched, and ended with it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from rich.text import Text

from streams.broker.processes import when_we_die
from streams.cli.invocation import Invocation
from streams.cli.output import note
from streams.settings import Settings

STOP_S: Final = 60.0
"""How long it may take to finish what is under way."""


@contextmanager
def evaluators_beside(invocation: Invocation, settings: Settings, ended: threading.Event) -> Iterator[None]:
    """Run an evaluators' worker while the block lasts; when it ends by itself, *ended* is set and we get a SIGTERM.

    settings: those of this process, which say where the broker is.
    """
    process = subprocess.Popen(  # noqa: S603  ourselves
        [sys.executable, "-m", "streams", "evaluators", *_arguments(invocation, settings)],
        stdin=subprocess.DEVNULL,
        # Ctrl-C is for this process, which then ends the other one; twice at once would cut it short.
        start_new_session=True,
    )
    leaving = threading.Event()

    def watch() -> None:
        code = process.wait()
        if not leaving.is_set():
            ended.set()
            note(Text(f"the evaluators have ended with code {code}; the lines above say why", "red"))
            os.kill(os.getpid(), signal.SIGTERM)

    with when_we_die("kill", "-TERM", str(process.pid)):
        threading.Thread(target=watch, name="evaluators watch", daemon=True).start()
        try:
            yield
        finally:
            leaving.set()
            _end(process)


def _arguments(invocation: Invocation, settings: Settings) -> list[str]:
    """Return what leads the other process to the settings of this one; the environment it has anyway."""
    given: Mapping[str, str] = {
        **invocation.overrides,
        "bootstrap_servers": ",".join(settings.bootstrap_servers),
        "security_protocol": settings.security_protocol,
    }
    if settings.health_port:
        given = {**given, "health_port": str(settings.health_port + 1)}
    config = ["--config", str(invocation.config)] if invocation.config else []
    return [*config, *(word for name, value in given.items() for word in ("-s", f"{name}={value}"))]


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
