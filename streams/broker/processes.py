"""Ports and child processes, as every broker here needs them."""

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from streams.errors import BrokerUnavailable

LOOPBACK = "127.0.0.1"
_ATTEMPTS = 5
_STOP_SECONDS = 5.0


class PortTaken(Exception):
    """Another process was faster; a new port may do."""


def ports_to_try(preferred: int | None, adjacent: int = 1) -> Iterator[int]:
    """Yield the preferred port, if there is one, then some that are free now."""
    if preferred is not None:
        yield preferred
    for _ in range(_ATTEMPTS):
        yield _free_ports(adjacent)


def _free_ports(adjacent: int) -> int:
    """Return the first of so many adjacent free ports on loopback.

    Below 32768, where no system takes ports for outgoing connections: a broker
    that is started again finds its port free.
    """
    for _ in range(100):
        first = 20000 + secrets.randbelow(12000)
        held = [socket.socket() for _ in range(adjacent)]
        try:
            for offset, each in enumerate(held):
                each.bind((LOOPBACK, first + offset))
        except OSError:
            continue
        else:
            return first
        finally:
            for each in held:
                each.close()
    raise BrokerUnavailable(f"no {adjacent} adjacent free ports on {LOOPBACK}")


@contextmanager
def when_we_die(*command: str) -> Iterator[None]:
    """Have a command run if this process ends before the block does, however it ends.

    A shell waits for the end of a pipe that only this process holds open. Unlike
    a death signal from the kernel, that works off Linux and from any thread.
    """
    watch = subprocess.Popen(  # noqa: S603  commands of this package only
        ["/bin/sh", "-c", 'read -r _; "$@"', "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        # Killed before its pipe closes, or it would do its work now.
        watch.kill()
        watch.communicate()


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, and after some patience end it; return when it is gone."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
