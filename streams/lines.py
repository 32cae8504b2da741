"""Traces and scores as JSON lines: told apart, completed where people write by hand, and checked as ingest will."""

import gzip
import io
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import orjson

from streams.core.ids import digest
from streams.errors import InvalidValue, SchemaMismatch
from streams.topics import EVAL_SCORES, TRACE_INGESTED
from streams.wire import Wire

Source = BinaryIO | io.RawIOBase
CHUNK: Final = 256 * 1024
MAX_LINE: Final = 128 * 1024 * 1024
GZIP: Final = b"\x1f\x8b"
MARK: Final = b"\xef\xbb\xbf"
"""What some editors put before a text to say that it is UTF-8: the byte order mark."""
SCORE_ONLY: Final = frozenset({"score_id", "value", "data_type", "target", "eval_run_id", "created_at", "source"})
"""A line with any of these is a score, every other line is a trace."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file; `read` is how many bytes of the file had been taken when it was."""

    number: int
    text: bytes
    read: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A line fit to be published.

    role: the input topic by its default name.
    recorded_at: when it happened, by its own word; none when it does not say.
    """

    role: str
    key: bytes
    value: bytes
    recorded_at: int | None


class Lines:
    """Prepares lines. It counts equal hand-written scores, so that the n-th of a run has an id of its own."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._written: Counter[str] = Counter()

    def prepare(self, text: bytes) -> Prepared:
        """Return what a line says, completed and checked.

        A trace may leave out name (`trace`), status (`COMPLETED`) and started_at (now); a score may leave
        out score_id (a hash of the line and of how often it came) and created_at (now).

        Raises:
            InvalidRecord: it is no trace and no score; the message says why.
        """
        try:
            fields = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise SchemaMismatch(f"no JSON: {error}") from None
        if not isinstance(fields, dict):
            raise SchemaMismatch("a line is one JSON object, a trace or a score")
        if SCORE_ONLY.isdisjoint(fields):
            return self._trace(text, fields)
        return self._score(text, fields)

    def _trace(self, text: bytes, fields: dict[str, Any]) -> Prepared:
        now = _now()
        defaults = {"name": "trace", "status": "COMPLETED", "started_at": now}
        value = text if defaults.keys() <= fields.keys() else orjson.dumps({**defaults, **fields})
        found = self._wire.read_trace(value, None, now)
        return Prepared(TRACE_INGESTED, found.session_id.encode(), value, found.trace.started_at)

    def _score(self, text: bytes, fields: dict[str, Any]) -> Prepared:
        value = text
        if fields.get("score_id") is None:
            value = orjson.dumps({**fields, "score_id": self._id_of(fields)})
        found = self._wire.read_score(value, None, _now())
        return Prepared(EVAL_SCORES, found.session_id.encode(), value, fields.get("created_at"))

    def _id_of(self, fields: dict[str, Any]) -> str:
        content = digest("line", orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode())
        self._written[content] += 1
        return digest("score", content, self._written[content])


def split(stream: Source) -> Iterator[list[Line]]:
    """Read a stream as it comes; yields the lines that each piece completes, empty ones left out.

    Raises:
        InvalidRecord: a line is longer than any record can be.
    """
    number, rest, taken = 0, b"", 0
    # What there is, without waiting for a full chunk: a pipe may go on for days.
    read = getattr(stream, "read1", stream.read)
    while piece := read(CHUNK):
        taken += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        if whole and number == 0:
            whole[0] = whole[0].removeprefix(MARK)
        if len(rest) > MAX_LINE:
            raise InvalidValue(f"line {number + len(whole) + 1}", rest[:40], f"at most {MAX_LINE} bytes")
        yield [Line(number + at, line, taken) for at, line in enumerate(whole, 1) if line.strip()]
        number += len(whole)
    if number == 0:
        rest = rest.removeprefix(MARK)
    if rest.strip():
        yield [Line(number + 1, rest, taken)]


def opened(path: Path) -> tuple[BinaryIO, BinaryIO]:
    """Open a file, compressed by gzip or not; returns what to read lines from, and the file whose position tells how far.

    Raises:
        OSError: it cannot be read.
    """
    file = path.open("rb")
    if file.peek(2)[:2] == GZIP:
        return cast("BinaryIO", gzip.GzipFile(fileobj=file)), file
    return file, file


def _now() -> int:
    return time.time_ns() // 1_000_000
