"""Published JSON on a fast path: what is written as it should be is read and checked in one pass, compiled from the schema.

Anything else is left to `json_datums` and `checks`, which convert what may be written otherwise and say what is wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import orjson

from streams.core.text import MAX_ID_BYTES
from streams.wire import schemas
from streams.wire.checks import LATEST, check_of
from streams.wire.emitter import Emitter
from streams.wire.json_datums import reader_of
from streams.wire.schemas import Schema

Quick = Callable[[Any], dict[str, Any] | None]

_SHORT: Final = MAX_ID_BYTES // 4
"""So many characters fit whatever they are."""


_PLAIN: Final[Mapping[tuple[str, str | None], Sequence[str]]] = {
    ("string", None): ["if type(held) is not str: return"],
    ("string", "id"): [f"if type(held) is not str or not 0 < len(held) <= {_SHORT} or not held.isprintable(): return"],
    ("string", "label"): [f"if type(held) is not str or len(held) > {_SHORT}: return"],
    ("string", "json"): ["if type(held) is not str: {target} = dumps(held).decode()"],
    ("string", "object"): ["if type(held) is dict: {target} = dumps(held).decode()", "elif held != '{{}}': return"],
    ("string", "value"): [
        "if type(held) is float or type(held) is int: {target} = repr(held)",
        "elif type(held) is not str: return",
    ],
    ("boolean", None): ["if type(held) is not bool: return"],
    ("long", "time"): [f"if type(held) is not int or not 0 <= held <= {LATEST}: return"],
}
"""Type and meaning of a field -> lines that leave with nothing where `held` is not plain."""


@cache
def quick_reader(name: str) -> Quick:
    """Return what makes a checked datum of the record *name* from a JSON value, or None of one that is not plain.

    What it makes is equal to what `datum_reader` makes and `checker` accepts.
    """
    emit = Emitter({"dumps": orjson.dumps})
    read: Quick = emit.function(_record(emit, name))

    def read_or_leave(value: Any) -> dict[str, Any] | None:
        try:
            return read(value)
        except Exception:  # noqa: BLE001  (whatever is odd about it, the slow reader says it better)
            return None

    return read_or_leave


def _record(emit: Emitter, name: str) -> str:
    """Emit the function that reads a record, after those of the records in it; returns its name."""
    fields = schemas.schema(name)["fields"]
    body = [f"def read_{name}(value):", " get = value.get"]
    for field in fields:
        body += [f" {field['name']} = held = get({field['name']!r})", *_field(emit, field)]
    pairs = ", ".join(f"{field['name']!r}: {field['name']}" for field in fields)
    emit.line(*body, f" return {{{pairs}}}")
    return f"read_{name}"


def _field(emit: Emitter, field: Mapping[str, Any]) -> list[str]:
    """Return what checks `held`, and puts the field's value under its own name where that is another."""
    plain = _plain(emit, field)
    if "default" not in field:
        return [f" {line}" for line in plain]
    if field["default"] is None:
        return [" if held is not None:", *(f"  {line}" for line in plain)]
    return [f" if held is None: {field['name']} = {field['default']!r}", " else:", *(f"  {line}" for line in plain)]


def _plain(emit: Emitter, field: Mapping[str, Any]) -> list[str]:
    """Return what reads a `held` that is there."""
    target, kind, holds = field["name"], _branch(field["type"]), field.get("holds")
    if isinstance(kind, str) and (kind, holds) in _PLAIN:
        return [line.format(target=target) for line in _PLAIN[kind, holds]]
    if isinstance(kind, dict) and kind["type"] == "enum":
        return [f"if held not in {emit.constant(frozenset(kind['symbols']))}: return"]
    if isinstance(kind, dict) and kind["type"] == "array" and isinstance(item := _named(kind["items"]), dict):
        return [
            "if type(held) is not list: return",
            f"{target} = [{_record(emit, item['name'])}(item) for item in held]",
            f"if None in {target}: return",
        ]
    return [f"{target} = {emit.constant(_slow(field))}(held)"]


def _branch(definition: Schema) -> Schema:
    """Return a type, what it names, or the other branch of a nullable one."""
    if isinstance(definition, list):
        (definition,) = definition[1:]
    return _named(definition)


def _named(definition: Schema) -> Schema:
    if isinstance(definition, str) and definition not in schemas.PRIMITIVES:
        return schemas.schema(definition.removeprefix(f"{schemas.NAMESPACE}."))
    return definition


def _slow(field: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return the slow reading of a field that is seldom there, with its check."""
    convert, check = reader_of(field), check_of(field)

    def read(held: Any) -> Any:
        found = convert(held)
        if check is not None:
            check(found)
        return found

    return read
