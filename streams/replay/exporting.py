"""A topic's records as JSON lines: traces and scores as `tgate publish` takes them, outputs as the stages say them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from aiokafka import ConsumerRecord

from streams.agents.outbox import ROLES
from streams.topics import EVAL_SCORES, NOTICE_CANDIDATES, SESSION_LOG, TRACE_INGESTED, TRACES
from streams.wire import Format, Wire

MADE: Final[Mapping[str, type[Any]]] = {role: made for made, role in ROLES.items()}
EXPORTED: Final = (TRACE_INGESTED, EVAL_SCORES, SESSION_LOG, TRACES, *MADE)
"""Topics that can be written to files; dead letters are not records, and tables belong to their stage."""

Line = Callable[[ConsumerRecord], bytes]


def line_of(role: str, wire: Wire, *, with_place: bool = False) -> Line:
    """Return what makes a line of a topic's record; *with_place* adds where and when it stood.

    The line of a trace or score names its session and its time, also where only its record did. Making a line
    raises InvalidRecord where the value cannot be read.
    """
    value = _value_of(role, wire)
    if not with_place:
        return value

    def line(record: ConsumerRecord) -> bytes:
        place = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "time": record.timestamp,
            "key": None if record.key is None else record.key.decode("utf-8", "replace"),
        }
        return orjson.dumps(place | {"value": orjson.Fragment(value(record))})

    return line


def _value_of(role: str, wire: Wire) -> Line:
    if role in (TRACE_INGESTED, TRACES):
        return lambda record: orjson.dumps(wire.read_trace(record.value, record.key, record.timestamp).whole)
    if role == EVAL_SCORES:
        return lambda record: _score(wire, record)
    if role == SESSION_LOG:
        return lambda record: wire.write(
            wire.read_log_record(record.value, record.offset, record.timestamp), Format.JSON
        )
    if role == NOTICE_CANDIDATES:
        return lambda record: wire.write(wire.read_candidate(record.value), Format.JSON)
    return lambda record: wire.write(wire.read(MADE[role], record.value), Format.JSON)


def _score(wire: Wire, record: ConsumerRecord) -> bytes:
    found = wire.read_score(record.value, record.key, record.timestamp)
    fields = wire.read_fields("Score", record.value)
    return orjson.dumps(fields | {"session_id": found.session_id, "created_at": found.score.created_at})
