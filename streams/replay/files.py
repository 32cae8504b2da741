"""Files of traces and scores, as `tgate publish` takes them, as inputs of a replay."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from streams.errors import InvalidRecord
from streams.lines import SCORE_ONLY, Line, Lines
from streams.replay.timeline import Input
from streams.topics import TRACE_INGESTED
from streams.wire import Wire


class Reader:
    """Reads lines into inputs; a line that does not say its time has that of the line before it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lines = Lines(wire)
        self._time = 0
        self.refused: list[tuple[str, int, str]] = []
        """File, line number and reason of each line that is no trace and no score."""

    def read(self, name: str, lines: Iterable[Line]) -> Iterator[Input]:
        """Yield the inputs in some lines of the file *name*."""
        for line in lines:
            try:
                yield self._input(line.text)
            except InvalidRecord as error:
                self.refused.append((name, line.number, str(error)))

    def _input(self, text: bytes) -> Input:
        prepared = self._lines.prepare(self._timed(text))
        if prepared.role == TRACE_INGESTED:
            trace = self._wire.read_trace(prepared.value, None, self._time)
            ended = trace.trace.ended_at
            self._time = trace.trace.started_at if ended is None else ended
            return Input(self._time, trace.session_id, trace.trace)
        score = self._wire.read_score(prepared.value, None, self._time)
        self._time = score.score.created_at
        return Input(self._time, score.session_id, score.score)

    def _timed(self, text: bytes) -> bytes:
        """Return a trace's line with a time; a score takes it when it is read, and what is neither will be refused."""
        try:
            fields: Any = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
        if not isinstance(fields, dict) or "started_at" in fields or not SCORE_ONLY.isdisjoint(fields):
            return text
        return orjson.dumps({**fields, "started_at": self._time})
