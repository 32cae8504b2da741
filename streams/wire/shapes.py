"""Shapes: how a type hint of the core and a schema fit together; every reader and writer is made from them.

A record's fields are named in two places only, its class and its schema; where they disagree, making the shape fails.
"""

import types
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from streams.core.candidates import CandidatePartitionState
from streams.core.eval_log import EvalLogRecord
from streams.core.log import LogRecord
from streams.core.model import Score, Trace
from streams.core.rules import Rules
from streams.wire import schemas
from streams.wire.once import once
from streams.wire.schemas import Schema

SCHEMA_NAMES: Mapping[type[Any], str] = {
    Trace: "TraceEvent",  # the schemas Trace and Score are what users publish, whole
    Score: "ScoreEvent",
    CandidatePartitionState: "BreakerPosition",
}


GIVEN: Mapping[type[Any], tuple[str, ...]] = {
    LogRecord: ("offset", "time"),
    EvalLogRecord: ("offset", "time"),
}
"""Fields of a class that its value does not hold: Kafka does, and whoever reads the value says what they are."""


@dataclass(frozen=True)
class Plain:
    """A value that is the same in Python, Avro and JSON: `string`, `long`, `int`, `double` or `boolean`."""

    kind: str


@dataclass(frozen=True)
class Choice:
    """A member of a StrEnum: an Avro enum, or a string where the set will grow."""

    members: type[StrEnum]
    symbols: tuple[str, ...] | None


@dataclass(frozen=True)
class Maybe:
    """A value or none."""

    held: "Shape"


@dataclass(frozen=True)
class Rows:
    """A tuple of any length, as an array."""

    item: "Shape"


@dataclass(frozen=True)
class Packed:
    """A tuple of 64-bit integers, as bytes: eight each, least significant first."""


@dataclass(frozen=True)
class Table:
    """A mapping from text, as a map."""

    value: "Shape"


@dataclass(frozen=True)
class Parts:
    """A plain tuple, as a record whose fields stand in the tuple's order."""

    fields: tuple[tuple[str, "Shape"], ...]


@dataclass(frozen=True)
class Entries:
    """A mapping from anything but text, as an array of records: the parts of the key, then those of the value.

    A key or value of one part is that part itself, not a tuple of it.
    """

    key: Parts
    value: Parts


@dataclass(frozen=True)
class RulesText:
    """Rules, as a record that holds their canonical JSON."""


@dataclass(frozen=True)
class Record:
    """A NamedTuple or dataclass, as a record; fields in the schema's order."""

    made: type[Any]
    name: str
    fields: tuple[tuple[str, "Shape"], ...]
    given: tuple[str, ...]
    """The fields that the value does not hold."""


@dataclass(frozen=True)
class OneOf:
    """One of several records, as a union."""

    branches: tuple["Record | RulesText", ...]


Shape = Plain | Choice | Maybe | Rows | Packed | Table | Parts | Entries | RulesText | Record | OneOf


def schema_name(made: type[Any]) -> str:
    """Return the name of the schema of a core class."""
    return SCHEMA_NAMES.get(made, made.__name__)


@once
def record(made: type[Any]) -> Record:
    """Return the shape of a core class.

    Raises:
        TypeError: a field is in the class or in its schema only, or the two types do not fit.
    """
    name = schema_name(made)
    definition = schemas.schema(name)
    hints = get_type_hints(made)
    given = GIVEN.get(made, ())
    wanted, held = set(hints) - set(given), {field["name"] for field in definition["fields"]}
    if wanted != held:
        raise TypeError(f"{made.__name__} and {name}.avsc do not have the same fields: {sorted(wanted ^ held)}")
    fields = tuple((field["name"], _shape(hints[field["name"]], field["type"])) for field in definition["fields"])
    return Record(made, name, fields, given)


def field_names(made: type[tuple[Any, ...]]) -> tuple[str, ...]:
    """Return the names of a NamedTuple's fields in the tuple's order."""
    names: tuple[str, ...] = made._fields  # type: ignore[attr-defined]
    return names


def branch_name(branch: Record | RulesText) -> str:
    """Return the name of the record that a branch of a union holds."""
    return branch.name if isinstance(branch, Record) else "Rules"


def _shape(hint: Any, definition: Schema) -> Shape:  # noqa: PLR0911 - one for each kind
    kind = _kind(definition)
    arguments = get_args(hint)
    if get_origin(hint) in {Union, types.UnionType}:
        return _union(arguments, definition)
    if get_origin(hint) is tuple and kind == "array":
        return Rows(_shape(arguments[0], definition["items"]))
    if get_origin(hint) is tuple and kind == "bytes":
        return Packed()
    if get_origin(hint) is tuple and kind == "record":
        return _parts(hint, _fields(definition))
    if kind == "map":
        return Table(_shape(arguments[1], definition["values"]))
    if kind == "array":
        return _entries(arguments, definition["items"])
    return _single(hint, definition, kind)


def _single(hint: Any, definition: Schema, kind: str) -> Shape:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Choice(hint, tuple(_named(definition)["symbols"]) if kind == "enum" else None)
    if hint is Rules:
        return RulesText()
    if kind == "record":
        return record(hint)
    if kind not in {str: {"string"}, int: {"int", "long"}, float: {"double"}, bool: {"boolean"}}.get(hint, ()):
        raise TypeError(f"{hint} does not fit {definition}")
    return Plain(kind)


def _union(arguments: tuple[Any, ...], definition: Schema) -> Shape:
    if not isinstance(definition, list):
        raise TypeError(f"{arguments} does not fit {definition}")
    if definition[0] == "null" and len(definition) == len(arguments) == 2:
        return Maybe(_shape(next(item for item in arguments if item is not type(None)), definition[1]))
    by_name = {schema_name(item): item for item in arguments}
    branches = [_single(by_name[_named(branch)["name"]], branch, "record") for branch in definition]
    return OneOf(tuple(branch for branch in branches if isinstance(branch, Record | RulesText)))


def _parts(hint: Any, fields: list[Any]) -> Parts:
    hints = get_args(hint)
    if len(hints) != len(fields):
        raise TypeError(f"{hint} does not fit the fields {[field['name'] for field in fields]}")
    return Parts(tuple((field["name"], _shape(part, field["type"])) for part, field in zip(hints, fields, strict=True)))


def _entries(arguments: tuple[Any, ...], items: Schema) -> Entries:
    key, value = arguments
    fields = _fields(items)
    split = len(get_args(key)) or 1
    return Entries(_flat(key, fields[:split]), _flat(value, fields[split:]))


def _flat(hint: Any, fields: list[Any]) -> Parts:
    return _parts(hint if get_origin(hint) is tuple else tuple[hint], fields)


def _fields(definition: Schema) -> list[Any]:
    fields: list[Any] = _named(definition)["fields"]
    return fields


def _kind(definition: Schema) -> str:
    if isinstance(definition, list):
        return "union"
    if isinstance(definition, str) and definition in schemas.PRIMITIVES:
        return definition
    kind: str = _named(definition)["type"]
    return kind


def _named(definition: Schema) -> Mapping[str, Any]:
    """Return the definition itself, also where a name stands for it."""
    if isinstance(definition, str):
        return schemas.schema(definition.removeprefix(f"{schemas.NAMESPACE}."))
    found: Mapping[str, Any] = definition
    return found
