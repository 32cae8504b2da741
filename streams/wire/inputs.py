"""What users publish, checked and made into what detection keeps of it."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streams.core.model import DataType, Score, ScoreSource, ScoreStatus, Trace, TraceStatus
from streams.core.text import MAX_ID_BYTES, MAX_INPUT_BYTES, MAX_REASON_BYTES, cut, plain
from streams.errors import InvalidValue
from streams.wire.checks import id_fits, json_object

MAX_FLAGGED: Final = 64

_SPACE: Final = re.compile(r"\s")
_MAX_DECIMAL: Final = 256
_BOOLEANS: Final = {"true": 1.0, "false": 0.0}
_TRACE_STATUSES: Final = {str(member): member for member in TraceStatus}
_SCORE_STATUSES: Final = {str(member): member for member in ScoreStatus}
_SOURCES: Final = {str(member): member for member in ScoreSource}

Datum = dict[str, Any]


class TraceInput(NamedTuple):
    """A valid trace.

    session_id: from the trace, else from the record's key.
    trace: what detection keeps.
    whole: the datum of the schema Trace, session_id filled in.
    """

    session_id: str
    trace: Trace
    whole: Datum


class ScoreInput(NamedTuple):
    """A valid score.

    session_id: from the score, else from the record's key.
    score: what detection keeps.
    """

    session_id: str
    score: Score


def trace_input(datum: Datum, key: bytes | None) -> TraceInput:
    """Return the trace that a checked datum of the schema Trace holds.

    Raises:
        InvalidValue: neither it nor the key names a session.
    """
    session_id = datum["session_id"] = datum["session_id"] or _session_of(key)
    content, tags = datum["input"], datum["tags"]
    trace = Trace(
        datum["trace_id"],
        datum["project"],
        _TRACE_STATUSES[datum["status"]],
        datum["started_at"],
        datum["ended_at"],
        datum["turn_index"],
        datum["ends_turn"],
        None if content is None else cut(content, MAX_INPUT_BYTES),
        plain(tags[0], MAX_ID_BYTES) or None if tags else None,
    )
    return TraceInput(session_id, trace, datum)


def score_input(datum: Datum, key: bytes | None, time: int) -> ScoreInput:
    """Return the score that a checked datum of the schema Score holds; *time* is the record's, for one that has none.

    Raises:
        InvalidValue: its value is none of its type's, or neither it nor the key names a session.
    """
    session_id = datum["session_id"] or _session_of(key)
    status = _SCORE_STATUSES[datum["status"]]
    created_at, reason = datum["created_at"], datum["reason"]
    threshold, flagged = _from_metadata(datum["metadata"])
    score = Score(
        datum["score_id"],
        datum["trace_id"],
        datum["name"],
        _value(datum["data_type"], datum["value"]) if status is ScoreStatus.SUCCESS else None,
        status,
        _SOURCES[datum["source"]],
        max(0, time) if created_at is None else created_at,
        plain(reason, MAX_REASON_BYTES) if reason else "",
        threshold,
        flagged,
        datum["eval_run_id"],
    )
    return ScoreInput(session_id, score)


def _session_of(key: bytes | None) -> str:
    try:
        session_id = (key or b"").decode()
    except UnicodeDecodeError:
        raise InvalidValue("session_id", None, f"an id, here or as the record's key; the key is {key!r:.80}") from None
    if not session_id:
        raise InvalidValue("session_id", None, "an id, here or as the record's key")
    if not id_fits(session_id):
        raise InvalidValue("the record's key", session_id, "a session_id of 1 to 256 bytes of UTF-8")
    return session_id


def _value(data_type: str, text: str | None) -> float | None:
    if data_type == DataType.CATEGORICAL:
        return None
    if data_type == DataType.BOOLEAN:
        value = _BOOLEANS.get(text.lower()) if text is not None else None
        if value is None:
            raise InvalidValue("value", text, "true or false, for a BOOLEAN that is a SUCCESS")
        return value
    number = math.nan if text is None else _decimal(text)
    if 0.0 <= number <= 1.0:
        return number + 0.0  # -0 is 0
    raise InvalidValue("value", text, "a decimal in [0, 1], for a NUMERIC that is a SUCCESS")


def _decimal(text: str) -> float:
    """Return the number that a text names, with the digits of any script; not a number where it names none."""
    if len(text) > _MAX_DECIMAL or _SPACE.search(text):
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def _from_metadata(text: str) -> tuple[float | None, tuple[str, ...]]:
    """Return the threshold and the flagged traces that a score's metadata carry; what does not fit counts as absent."""
    if text == "{}":
        return None, ()
    metadata: Mapping[str, Any] = json_object(text)
    threshold, flagged = metadata.get("threshold"), metadata.get("flagged_traces")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        threshold = None
    if not isinstance(flagged, list):
        flagged = []
    fitting = [item for item in flagged[:MAX_FLAGGED] if isinstance(item, str) and id_fits(item)]
    return None if threshold is None else float(threshold), tuple(fitting)
