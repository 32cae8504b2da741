"""Core records from datums, the values that fastavro returns, and core records as JSON values."""

from collections.abc import Callable, Mapping
from typing import Any

from streams.core.rules import Rules
from streams.wire.decoder import rules_of, unpack
from streams.wire.emitter import Emitter
from streams.wire.once import once
from streams.wire.schemas import full_name
from streams.wire.shapes import (
    Choice,
    Entries,
    Maybe,
    OneOf,
    Packed,
    Parts,
    Plain,
    Record,
    Rows,
    RulesText,
    Shape,
    Table,
    branch_name,
    record,
)

Convert = Callable[[Any], Any]


@once
def from_datum(made: type[Any]) -> Callable[..., Any]:
    """Return what makes a core record of a datum and of the fields not in it.

    A datum has a dict for a record, and a pair of name and dict for a record that stands in a union of several.
    """
    shape = record(made)
    fields = [(name, _reader(field)) for name, field in shape.fields]

    def read(datum: Mapping[str, Any], *values: Any) -> Any:
        return made(**dict(zip(shape.given, values, strict=True)), **{name: of(datum[name]) for name, of in fields})

    return read


def _reader(shape: Shape) -> Convert:  # noqa: PLR0911 - one for each kind
    match shape:
        case Plain():
            return float if shape.kind == "double" else _same
        case Choice():
            members = {str(member): member for member in shape.members}
            return members.__getitem__ if shape.symbols else lambda held: members.get(held, held)
        case Maybe():
            inner = _reader(shape.held)
            return lambda held: None if held is None else inner(held[1] if isinstance(held, tuple) else held)
        case Packed():
            return lambda held: unpack(held) if held else ()  # a default is an empty str
        case RulesText():
            return lambda held: rules_of(held["text"])
        case Record():
            return from_datum(shape.made)
        case OneOf():
            branches = {full_name(branch_name(branch)): _reader(branch) for branch in shape.branches}
            return lambda held: branches[held[0]](held[1])
        case _:
            return _items_reader(shape)


def _items_reader(shape: Rows | Table | Entries | Parts) -> Convert:
    match shape:
        case Rows():
            item = _reader(shape.item)
            return lambda held: tuple(map(item, held))
        case Table():
            value = _reader(shape.value)
            return lambda held: {key: value(found) for key, found in held.items()}
        case Entries():
            left, right = _side_reader(shape.key), _side_reader(shape.value)
            return lambda held: {left(entry): right(entry) for entry in held}
        case Parts():
            parts = [(name, _reader(part)) for name, part in shape.fields]
            return lambda held: tuple(part(held[name]) for name, part in parts)


def _side_reader(side: Parts) -> Convert:
    whole = _items_reader(side)
    return whole if len(side.fields) > 1 else lambda entry: whole(entry)[0]


def _same(held: Any) -> Any:
    return held


@once
def json_writer(made: type[Any]) -> Convert:
    """Return what makes a JSON value of a core record, fields in the schema's order; enum members are text already."""
    return _record_writer(record(made))


@once
def _record_writer(shape: Record) -> Convert:
    emit = Emitter({})
    with emit.block("def write(value):"):
        fields = (f"{name!r}: {_expression(emit, field, f'value.{name}')}" for name, field in shape.fields)
        emit.line(f"return {{{', '.join(fields)}}}")
    return emit.function("write")


def _expression(emit: Emitter, shape: Shape, of: str) -> str:  # noqa: PLR0911 - one for each kind
    """Return the Python expression for the JSON value of the expression *of*."""
    match shape:
        case Plain() | Choice():
            return of
        case Maybe():
            inner = _expression(emit, shape.held, of)
            return of if inner == of else f"(None if {of} is None else {inner})"
        case Rows() | Table():
            return _items_expression(emit, shape, of)
        case Record():
            return f"{emit.constant(_record_writer(shape))}({of})"
        case Parts():
            parts = (f"{name!r}: {_expression(emit, p, f'{of}[{i}]')}" for i, (name, p) in enumerate(shape.fields))
            return f"{{{', '.join(parts)}}}"
        case RulesText():
            return f"{{'text': {of}.text}}"
        case OneOf():
            return f"{emit.constant(_union_writer(shape))}({of})"
        case Packed():
            return f"list({of})"
        case Entries():
            raise TypeError("stored positions have no JSON form")


def _items_expression(emit: Emitter, shape: Rows | Table, of: str) -> str:
    item = emit.name()
    if isinstance(shape, Rows):
        inner = _expression(emit, shape.item, item)
        return of if inner == item else f"[{inner} for {item} in {of}]"
    key, inner = emit.name(), _expression(emit, shape.value, item)
    return f"{{{key}: {inner} for {key}, {item} in {of}.items()}}"


def _union_writer(shape: OneOf) -> Convert:
    writers: dict[type[Any], tuple[str, Convert]] = {}
    for branch in shape.branches:
        if isinstance(branch, Record):
            writers[branch.made] = branch.name, _record_writer(branch)
        else:
            writers[Rules] = branch_name(branch), lambda rules: {"text": rules.text}

    def write(value: Any) -> dict[str, Any]:
        name, writer = writers[type(value)]
        return {name: writer(value)}

    return write
