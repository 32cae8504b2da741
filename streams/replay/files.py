"""Files of traces and scores, as `tgate publish` takes them, as inputs of a replay."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from streams.errors import InvalidRecord
from streams.lines import SCORE_ONLY, Line, Lines
from streams.replay.timeline import Input
from streams.topics import TRACE_INGESTED
from streams.wire import Wire

TIMES: Final = {True: "created_at", False: "started_at"}
"""Where a score, and a trace, says when it happened."""


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
        """Return the line with a time; what is no JSON object is left to be refused."""
        try:
            fields: Any = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
        if not isinstance(fields, dict):
            return text
        name = TIMES[not SCORE_ONLY.isdisjoint(fields)]
        if fields.get(name) is not None:
            return text
        # An id made from the line must not change with the time that is filled in.
        filled = fields if "score_id" in fields or name == "started_at" else self._lines.identified(fields)
        return orjson.dumps({**filled, name: self._time})
