"""What a client publishes, from Python values to bytes: plain JSON, redacted, checked, and short enough."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from streams.core.text import cut, plain
from streams.errors import InvalidValue, TooLarge
from streams.topics import EVAL_SCORES, TRACE_INGESTED
from streams.wire import Format, Wire

Fields = dict[str, Any]
Redact = Callable[[Fields], Fields | None]
"""Returns what may leave the process of a trace's or score's fields; none keeps the whole record back."""

MAX_LABEL_BYTES: Final = 256
MAX_ERROR_BYTES: Final = 2048
SHORTENED_BYTES: Final = 1024
_ROLES: Final[Mapping[Literal["Trace", "Score"], str]] = {"Trace": TRACE_INGESTED, "Score": EVAL_SCORES}
_VALUES: Final = ("input", "output")
_OBJECTS: Final = ("metadata", "model_parameters")


@dataclass(frozen=True, slots=True)
class Encoded:
    """A record fit to be sent; `role` is its topic by its default name."""

    role: str
    key: bytes
    value: bytes


def jsonable(value: Any) -> Any:
    """Return *value* as JSON has it; what JSON has no word for becomes its repr."""
    return orjson.loads(json_text(value))


def json_text(value: Any) -> str:
    """Return *value* as JSON text; never raises, whatever the value is."""
    try:
        return orjson.dumps(value, default=_shown, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        # A lone surrogate, an integer of more than 64 bits, nesting: the standard library takes more of them.
        text = json.dumps(value, default=_shown, skipkeys=True)
        orjson.loads(text)
    except (TypeError, ValueError, RecursionError):
        return orjson.dumps(plain(_shown(value), MAX_ERROR_BYTES)).decode()
    return text


def encode(wire: Wire, name: Literal["Trace", "Score"], fields: Mapping[str, Any], redact: Redact | None) -> Encoded:
    """Return the record of a trace or score; *fields* hold values, not JSON text.

    Raises:
        Withheld: the redaction keeps the record back.
        InvalidRecord: it is no valid trace or score, or too large even when shortened.
        Exception: whatever the redaction raises; then nothing may be sent.
    """
    given = dict(fields)
    if redact is not None:
        kept = redact(jsonable(given))
        if kept is None:
            raise Withheld
        given = kept
    ready = _ready(given)
    session_id = ready.get("session_id")
    if not isinstance(session_id, str) or not session_id:
        raise InvalidValue("session_id", session_id, "an id")
    key = session_id.encode("utf-8", "surrogatepass")
    # Framing would ask a registry, which may be away; every reader tells the formats apart.
    for shortened in (ready, _shortened(ready), {**_shortened(ready), "spans": []}):
        try:
            return Encoded(_ROLES[name], key, wire.write_input(name, shortened, Format.JSON))
        except TooLarge:
            if name == "Score":
                raise
    raise TooLarge("a trace is too large even without its spans")


def score_fields(
    session: str, metric: str, value: float | bool | str | None, trace: str | None, more: Mapping[str, Any]
) -> Fields:
    """Return a score as it is published."""
    given = dict(more)
    metadata = {**given.pop("metadata", {})}
    metadata |= {name: given.pop(name) for name in ("threshold", "flagged_traces") if name in given}
    kind = "BOOLEAN" if isinstance(value, bool) else "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
    return {
        "score_id": secrets.token_hex(16),
        "session_id": session,
        "trace_id": trace,
        "target": "SESSION" if trace is None else "TRACE",
        "name": metric,
        "data_type": kind,
        "value": value,
        "status": "FAILED" if value is None else "SUCCESS",
        "created_at": time.time_ns() // 1_000_000,
        "metadata": metadata,
        **given,
    }


class Withheld(Exception):
    """The redaction keeps a whole record back."""


def _ready(fields: Fields) -> Fields:
    """Return the fields as the wire takes them: values as JSON text, labels and errors cut to what is allowed."""
    ready = {name: value for name, value in fields.items() if value is not None}
    for name in _VALUES:
        if name in ready:
            ready[name] = json_text(ready[name])
    for name in _OBJECTS:
        if name in ready:
            ready[name] = json_text(dict(ready[name]))
    for name in ("error", "reason"):
        if name in ready:
            ready[name] = plain(str(ready[name]), MAX_ERROR_BYTES)
    if "score_id" not in ready and "name" in ready:
        ready["name"] = cut(str(ready["name"]), MAX_LABEL_BYTES)
    if "spans" in ready:
        ready["spans"] = [_ready(span) for span in ready["spans"]]
    return ready


def _shortened(ready: Fields) -> Fields:
    """Return a trace with the starts of its long values only: better than none, for the turn needs its trace."""
    short = dict(ready)
    for name in _VALUES:
        if len(text := short.get(name, "")) > SHORTENED_BYTES:
            short[name] = json_text(cut(text, SHORTENED_BYTES) + " ... (shortened)")
    for name in _OBJECTS:
        if len(short.get(name, "")) > SHORTENED_BYTES:
            short[name] = '{"shortened":true}'
    if "spans" in short:
        short["spans"] = [_shortened(span) for span in short["spans"]]
    return short


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  (an agent's object may be broken; its loop must not be)
        return f"<{type(value).__name__}>"
