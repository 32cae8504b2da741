"""Where `tgate up` tells its broker's address, and how others in the same directory find it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

ADDRESS_FILE: Final = Path(".tgate/bootstrap")
"""Where `tgate up` writes its broker's address, so that other terminals in the same directory find it."""


def announced() -> str | None:
    """Return the address that a running `tgate up` has written in this directory, if there is one."""
    try:
        address, pid = ADDRESS_FILE.read_text("utf-8").split()
        os.kill(int(pid), 0)
    except PermissionError:
        return address  # another user's process, and it lives
    except (OSError, ValueError):
        return None
    return address


@contextmanager
def announce(bootstrap: str) -> Iterator[bool]:
    """Let other terminals find the broker while the block lasts; yields whether they can."""
    if announced() is not None:
        yield False
        return
    try:
        ADDRESS_FILE.parent.mkdir(exist_ok=True)
        ADDRESS_FILE.write_text(f"{bootstrap} {os.getpid()}\n", "utf-8")
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            ADDRESS_FILE.unlink()
            ADDRESS_FILE.parent.rmdir()  # only when nothing else is kept there
