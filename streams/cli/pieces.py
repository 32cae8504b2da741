"""Files and standard input as pieces of lines; reading from a pipe never holds up the rest, nor the exit.

A file is JSON lines, compressed by gzip or not, or Parquet.
"""

import asyncio
import io
import sys
import threading
import zlib
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from streams.errors import InvalidRecord
from streams.lines import Line, Source, opened, split
from streams.parquet import is_parquet, read_rows

STDIN: Final = Path("-")
_AHEAD: Final = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines of a file.

    taken: bytes of the file read so far, as they are on disk.
    problem: why reading ended before the file did; empty when it did not.
    """

    name: str
    lines: list[Line]
    taken: int
    problem: str = ""


async def pieces(file: Path) -> AsyncGenerator[Piece, None]:
    """Yield the pieces of a file, or of standard input as they come."""
    if file != STDIN:
        for piece in _of_file(file):
            yield piece
            await asyncio.sleep(0)
        return
    queue: asyncio.Queue[Piece | None] = asyncio.Queue(_AHEAD)
    loop = asyncio.get_running_loop()
    # A daemon, reading past Python's buffer and its lock: Ctrl-C must not wait for the next line to come.
    threading.Thread(target=_feed, args=(loop, queue), daemon=True).start()
    while (came := await queue.get()) is not None:
        yield came


def _feed(loop: asyncio.AbstractEventLoop, queue: "asyncio.Queue[Piece | None]") -> None:
    for piece in _of_stdin():
        if not _put(loop, queue, piece):
            return
    _put(loop, queue, None)


def _put(loop: asyncio.AbstractEventLoop, queue: "asyncio.Queue[Piece | None]", piece: Piece | None) -> bool:
    try:
        asyncio.run_coroutine_threadsafe(queue.put(piece), loop).result()
    except (RuntimeError, asyncio.CancelledError):
        return False  # the loop has ended: nobody reads any more
    return True


def _of_stdin() -> Iterator[Piece]:
    try:
        stream: Source = io.FileIO(sys.stdin.fileno(), closefd=False)
    except (OSError, ValueError):
        stream = sys.stdin.buffer
    yield from _pieces("standard input", split(stream), None)


def _of_file(file: Path) -> Iterator[Piece]:
    try:
        if is_parquet(file):
            yield from _rows(file)
            return
        stream, on_disk = opened(file)
    except OSError as error:
        yield Piece(str(file), [], 0, error.strerror or str(error))
        return
    with stream, on_disk:
        yield from _pieces(str(file), split(stream), on_disk)


def _rows(file: Path) -> Iterator[Piece]:
    """Return a Parquet file in pieces; how far they are is what its rows say."""
    for piece in _pieces(str(file), read_rows(file), None):
        yield Piece(piece.name, piece.lines, piece.lines[-1].read if piece.lines else 0, piece.problem)


def _pieces(name: str, read: Iterable[list[Line]], on_disk: BinaryIO | None) -> Iterator[Piece]:
    taken = 0
    try:
        for lines in read:
            taken = on_disk.tell() if on_disk is not None else 0
            yield Piece(name, lines, taken)
    except (OSError, EOFError, zlib.error, InvalidRecord) as error:
        yield Piece(name, [], taken, f"cannot be read on: {error}")
