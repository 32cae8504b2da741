"""JSON values to datums: what is missing gets its default, what is unknown is left out, the rest must fit its schema."""

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import orjson

from streams.errors import InvalidValue
from streams.wire import schemas
from streams.wire.encoder import pack
from streams.wire.schemas import Schema

Convert = Callable[[Any], Any]

_MISSING: Final = object()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BITS: Final = {"int": 31, "long": 63}


@cache
def datum_reader(name: str) -> Convert:
    """Return what makes a datum of the record *name* from a JSON value.

    Raises, when it is used:
        InvalidValue: a field is missing, or does not fit.
    """
    return _record(schemas.schema(name))


def text_of(value: Any) -> str:
    """Return a JSON value as JSON text."""
    return orjson.dumps(value).decode()


def milliseconds(text: str) -> int:
    """Return an ISO 8601 time as milliseconds since 1970; without an offset it is UTC.

    Raises:
        ValueError: it is no such time.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _record(definition: Mapping[str, Any]) -> Convert:
    fields = [(field["name"], reader_of(field), field.get("default", _MISSING)) for field in definition["fields"]]

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue("", value, "a JSON object")
        datum: dict[str, Any] = {}
        for name, convert, default in fields:
            held = value.get(name)
            if held is None and default is not _MISSING:
                # A list or dict is copied: whoever gets the datum may add to it.
                datum[name] = default.copy() if isinstance(default, list | dict) else default
                continue
            try:
                datum[name] = convert(held)
            except InvalidValue as error:
                raise error.inside(name) from None
        return datum

    return read


def reader_of(field: Mapping[str, Any]) -> Convert:
    """Return what reads one field of a record, where it is there."""
    strict = _value(field["type"])
    loosen = _LOOSENED.get(field.get("holds", ""))
    return strict if loosen is None else lambda held: strict(loosen(held))


def _value(definition: Schema) -> Convert:  # noqa: PLR0911 - one for each kind
    if isinstance(definition, list):
        return _union(definition)
    if isinstance(definition, str):
        if definition not in schemas.PRIMITIVES:
            return _value(schemas.schema(definition.removeprefix(f"{schemas.NAMESPACE}.")))
        return _PRIMITIVES[definition]
    match definition["type"]:
        case "record":
            return _record(definition)
        case "enum":
            return _enum(definition["symbols"])
        case "array":
            return _array(_value(definition["items"]))
        case kind:
            assert kind == "map"
            return _map(_value(definition["values"]))


def _union(branches: list[Schema]) -> Convert:
    if branches[0] == "null":
        (branch,) = branches[1:]
        inner = _value(branch)
        return lambda value: None if value is None else inner(value)
    by_name = {branch["name"]: _record(branch) for branch in branches}

    def read(value: Any) -> tuple[str, Any]:
        if not isinstance(value, dict) or len(value) != 1 or (name := next(iter(value))) not in by_name:
            raise InvalidValue("", value, f"an object with one field, {' or '.join(by_name)}")
        try:
            return schemas.full_name(name), by_name[name](value[name])
        except InvalidValue as error:
            raise error.inside(name) from None

    return read


def _enum(symbols: list[str]) -> Convert:
    known = frozenset(symbols)

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise InvalidValue("", value, ", ".join(symbols))
        return value

    return read


def _array(item: Convert) -> Convert:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InvalidValue("", value, "a list")
        found = []
        for index, held in enumerate(value):
            try:
                found.append(item(held))
            except InvalidValue as error:
                raise error.inside(f"[{index}]") from None
        return found

    return read


def _map(item: Convert) -> Convert:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue("", value, "a JSON object")
        found = {}
        for key, held in value.items():
            try:
                found[key] = item(held)
            except InvalidValue as error:
                raise error.inside(key) from None
        return found

    return read


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidValue("", value, "text")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue("", value, "true or false")
    return value


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidValue("", value, "a number")
    return float(value)


def _whole(bits: int) -> Convert:
    def read(value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits) <= value < 1 << bits:
            raise InvalidValue("", value, f"a whole number of at most {bits + 1} bits")
        return value

    return read


def _bytes(value: Any) -> bytes:
    """Read the only bytes there are here: 64-bit integers, least significant byte first."""
    try:
        return pack(tuple(value))
    except (TypeError, struct.error):
        raise InvalidValue("", value, "a list of whole numbers of at most 64 bits") from None


_PRIMITIVES: Final[Mapping[str, Convert]] = {
    "string": _string,
    "boolean": _boolean,
    "double": _double,
    "bytes": _bytes,
    **{kind: _whole(bits) for kind, bits in _BITS.items()},
}


def _time(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return milliseconds(value)
    except (ValueError, OverflowError):
        raise InvalidValue("", value, "milliseconds since 1970, UTC, or ISO 8601") from None


def _json_text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else text_of(value)


def _score_value(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return _json_text(value)


# In JSON these may be written as they would naturally be there; the schema says text or a number.
_LOOSENED: Final[Mapping[str, Convert]] = {
    "time": _time,
    "json": _json_text,
    "object": _json_text,
    "value": _score_value,
}
