"""What a schema's `holds` asks of a field beyond its type, checked on datums of every format alike."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import orjson

from streams.core.text import MAX_ID_BYTES
from streams.errors import InvalidValue
from streams.wire import schemas
from streams.wire.schemas import Schema

Check = Callable[[Any], None]

LATEST: Final = 253_402_300_799_999
"""The end of the year 9999 in milliseconds; more is most likely another unit."""


@cache
def checker(name: str) -> Check:
    """Return what checks a datum of the record *name*.

    Raises, when it is used:
        InvalidValue: a field holds what its schema does not allow.
    """
    return _record(schemas.schema(name))


def id_fits(value: str) -> bool:
    """Whether an id is neither empty nor too long, and fit to stand in a notice or on a terminal."""
    return bool(value) and value.isprintable() and _short(value)


def json_object(text: str) -> dict[str, Any]:
    """Return the object that JSON text holds.

    Raises:
        ValueError: it holds none.
    """
    found = orjson.loads(text)
    if not isinstance(found, dict):
        raise ValueError("no object")  # noqa: TRY004 - what is no JSON at all is a ValueError too
    return found


def _record(definition: Mapping[str, Any]) -> Check:
    found = [(field["name"], check_of(field)) for field in definition["fields"]]
    fields = [(name, check) for name, check in found if check is not None]

    def check_record(datum: Any) -> None:
        for name, check in fields:
            held = datum[name]
            if held is not None:
                try:
                    check(held)
                except InvalidValue as error:
                    raise error.inside(name) from None

    return check_record


def check_of(field: Mapping[str, Any]) -> Check | None:
    """Return what checks one field of a record, if its schema asks anything of it."""
    if holds := field.get("holds"):
        return _HOLDS[holds]
    return _nested(field["type"])


def _nested(definition: Schema) -> Check | None:
    if definition in ("int", ["null", "int"]):
        return _int
    if isinstance(definition, dict) and definition["type"] == "array" and isinstance(definition["items"], dict):
        return _array(_record(definition["items"]))
    return None


def _array(item: Check) -> Check:
    def check_items(held: Any) -> None:
        for index, value in enumerate(held):
            try:
                item(value)
            except InvalidValue as error:
                raise error.inside(f"[{index}]") from None

    return check_items


def _id(value: str) -> None:
    if not id_fits(value):
        raise InvalidValue("", value, f"1 to {MAX_ID_BYTES} bytes of UTF-8, without control characters")


def _label(value: str) -> None:
    if not _short(value):
        raise InvalidValue("", value, f"at most {MAX_ID_BYTES} bytes of UTF-8")


def _short(value: str) -> bool:
    return len(value) * 4 <= MAX_ID_BYTES or len(value.encode()) <= MAX_ID_BYTES


def _time(value: int) -> None:
    if not 0 <= value <= LATEST:
        raise InvalidValue("", value, "milliseconds since 1970, UTC")


def _int(value: int) -> None:
    """Refuse what a damaged value may hold and fastavro reads, but does not write again."""
    if not -(1 << 31) <= value < 1 << 31:
        raise InvalidValue("", value, "a whole number of at most 32 bits")


def _object(value: str) -> None:
    if value != "{}":
        try:
            json_object(value)
        except ValueError:
            raise InvalidValue("", value, "JSON text of one object") from None


def _amount(value: float) -> None:
    if not 0 <= value < math.inf:
        raise InvalidValue("", value, "a number that is not negative")


def _counts(values: Mapping[str, int]) -> None:
    for name, value in values.items():
        if value < 0:
            raise InvalidValue(name, value, "a number that is not negative")


def _anything(_value: object) -> None:
    """Accept what its own reader looks at."""


_HOLDS: Final[Mapping[str, Check]] = {
    "id": _id,
    "label": _label,
    "time": _time,
    "object": _object,
    "amount": _amount,
    "counts": _counts,
    "json": _anything,
    "value": _anything,
}
