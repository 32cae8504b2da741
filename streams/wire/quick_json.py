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
    source = _Source()
    source.record(name)
    exec(compile("\n".join(source.lines), f"<quick {name}>", "exec"), source.known)  # noqa: S102  (our own schemas)
    read: Quick = source.known[f"read_{name}"]

    def read_or_leave(value: Any) -> dict[str, Any] | None:
        try:
            return read(value)
        except Exception:  # noqa: BLE001  (whatever is odd about it, the slow reader says it better)
            return None

    return read_or_leave


class _Source:
    """The source of one function a record; a nested record's comes before that of its parent."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, Any] = {"dumps": orjson.dumps}

    def record(self, name: str) -> str:
        definition = schemas.schema(name)
        body = [f"def read_{name}(value):", " get = value.get"]
        for field in definition["fields"]:
            body += [f" {field['name']} = held = get({field['name']!r})", *self._field(name, field)]
        pairs = ", ".join(f"{field['name']!r}: {field['name']}" for field in definition["fields"])
        self.lines += [*body, f" return {{{pairs}}}"]
        return f"read_{name}"

    def _field(self, name: str, field: Mapping[str, Any]) -> list[str]:
        """Return what checks `held` and puts the field's value under its own name where that is another."""
        target, plain = field["name"], self._plain(name, field)
        if "default" not in field:
            return [f" {line}" for line in plain]
        default = field["default"]
        if default is None:
            return [" if held is not None:", *(f"  {line}" for line in plain)]
        return [f" if held is None: {target} = {default!r}", " else:", *(f"  {line}" for line in plain)]

    def _plain(self, name: str, field: Mapping[str, Any]) -> list[str]:
        """Return what reads a `held` that is there."""
        target, kind, holds = field["name"], _branch(field["type"]), field.get("holds")
        if isinstance(kind, str) and (kind, holds) in _PLAIN:
            return [line.format(target=target) for line in _PLAIN[kind, holds]]
        if isinstance(kind, dict) and kind["type"] == "enum":
            symbols = self._known(name, target, frozenset(kind["symbols"]))
            return [f"if held not in {symbols}: return"]
        if isinstance(kind, dict) and kind["type"] == "array" and isinstance(item := _named(kind["items"]), dict):
            read = self.record(item["name"])
            return [
                "if type(held) is not list: return",
                f"{target} = [{read}(item) for item in held]",
                f"if None in {target}: return",
            ]
        return [f"{target} = {self._known(name, target, _slow(field))}(held)"]

    def _known(self, name: str, target: str, value: Any) -> str:
        self.known[f"{target}_of_{name}"] = value
        return f"{target}_of_{name}"


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
