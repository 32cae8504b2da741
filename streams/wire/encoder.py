"""Core records to Avro binary: one function a record, compiled from its shape.

fastavro wants a dict a record and finds out for every value of a union which branch it is; on the session log and the
states, which are written for every event, that costs several times what this does.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from streams.core.rules import Rules
from streams.wire.emitter import Emitter
from streams.wire.once import once
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
    field_names,
    record,
)

Add = Callable[[bytes], None]

# Varints fourteen bits at a time: a table for the last two bytes, one for two bytes with more to come.
_LAST: Final = [bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7]) for n in range(1 << 14)]
_MORE: Final = [bytes([n & 127 | 128, n >> 7 | 128]) for n in range(1 << 14)]


def varint(number: int) -> bytes:
    """Return a 64-bit integer as Avro writes it."""
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(f"{number} does not fit an Avro long")
    rest = (number << 1) ^ (number >> 63)
    head = b""
    while rest >= 1 << 14:
        head += _MORE[rest & 0x3FFF]
        rest >>= 14
    return head + _LAST[rest]


class Varints(dict[int, bytes]):
    """Every 64-bit integer -> how Avro writes it; the lengths and counts that most values have are held ready."""

    def __missing__(self, number: int) -> bytes:
        return varint(number)


_VARINTS: Final = Varints(enumerate(_LAST[0::2]))


def pack(numbers: tuple[int, ...]) -> bytes:
    """Return 64-bit integers as eight bytes each, least significant first."""
    return struct.pack(f"<{len(numbers)}q", *numbers)


@once
def encoder(made: type[Any]) -> Callable[[Any, Add], None]:
    """Return what writes a core class: takes a value, and the function that each run of bytes is handed to."""
    return _record_encoder(record(made))


@once
def _record_encoder(shape: Record) -> Callable[[Any, Add], None]:
    emit = Emitter({"varints": _VARINTS, "pack": pack, "double": struct.Struct("<d").pack})
    with emit.block("def encode(value, add):"):
        variables = {name: emit.name() for name in (*shape.given, *(name for name, _ in shape.fields))}
        if issubclass(shape.made, tuple):
            emit.line(f"{', '.join(variables[name] for name in field_names(shape.made))}, = value")
        else:
            emit.line(*(f"{variable} = value.{name}" for name, variable in variables.items()))
        for name, field in shape.fields:
            _emit(emit, field, variables[name])
    return emit.function("encode")


def _emit(emit: Emitter, shape: Shape, of: str) -> None:
    """Emit the lines that write the value of the variable *of*."""
    match shape:
        case Plain():
            _emit_plain(emit, shape.kind, of)
        case Choice():
            _emit_choice(emit, shape, of)
        case Maybe():
            with emit.block(f"if {of} is None:"):
                emit.line("add(b'\\0')")
            with emit.block("else:"):
                emit.line("add(b'\\2')")
                _emit(emit, shape.held, of)
        case Packed():
            with emit.block(f"if {of}:"):
                emit.line(f"{of} = pack({of})")
                _emit_bytes(emit, of)
            with emit.block("else:"):
                emit.line("add(b'\\0')")
        case Rows() | Table() | Entries():
            _emit_items(emit, shape, of)
        case Parts():
            _emit_parts(emit, shape, of)
        case RulesText():
            emit.line(f"{of} = {of}.text")
            _emit_plain(emit, "string", of)
        case Record():
            emit.line(f"{emit.constant(_record_encoder(shape))}({of}, add)")
        case OneOf():
            _emit_union(emit, shape, of)


def _emit_plain(emit: Emitter, kind: str, of: str) -> None:
    match kind:
        case "string":
            emit.line(f"{of} = {of}.encode()")
            _emit_bytes(emit, of)
        case "double":
            emit.line(f"add(double({of}))")
        case "boolean":
            emit.line(f"add(b'\\1' if {of} else b'\\0')")
        case _:
            emit.line(f"add(varints[{of}])")


def _emit_bytes(emit: Emitter, of: str) -> None:
    emit.line(f"add(varints[len({of})])", f"add({of})")


def _emit_choice(emit: Emitter, shape: Choice, of: str) -> None:
    if shape.symbols is not None:
        emit.line(f"add({emit.constant({symbol: varint(i) for i, symbol in enumerate(shape.symbols)})}[{of}])")
        return
    known = {str(member): varint(len(member.encode())) + member.encode() for member in shape.members}
    known_of = emit.name()
    emit.line(f"{known_of} = {emit.constant(known)}.get({of})")
    with emit.block(f"if {known_of}:"):
        emit.line(f"add({known_of})")
    with emit.block("else:"):  # read from a newer writer, and passed on as it came
        emit.line(f"{of} = {of}.encode()")
        _emit_bytes(emit, of)


def _emit_items(emit: Emitter, shape: Rows | Table | Entries, of: str) -> None:
    item, key = emit.name(), emit.name()
    with emit.block(f"if {of}:"):
        emit.line(f"add(varints[len({of})])")
        with emit.block(f"for {item} in {of}:" if isinstance(shape, Rows) else f"for {key}, {item} in {of}.items():"):
            match shape:
                case Rows():
                    _emit(emit, shape.item, item)
                case Table():
                    _emit_plain(emit, "string", key)
                    _emit(emit, shape.value, item)
                case Entries():
                    _emit_side(emit, shape.key, key)
                    _emit_side(emit, shape.value, item)
    emit.line("add(b'\\0')")


def _emit_side(emit: Emitter, side: Parts, of: str) -> None:
    if len(side.fields) == 1:
        _emit(emit, side.fields[0][1], of)
    else:
        _emit_parts(emit, side, of)


def _emit_parts(emit: Emitter, shape: Parts, of: str) -> None:
    names = [emit.name() for _ in shape.fields]
    emit.line(f"{', '.join(names)}, = {of}")
    for name, (_, part) in zip(names, shape.fields, strict=True):
        _emit(emit, part, name)


def _emit_union(emit: Emitter, shape: OneOf, of: str) -> None:
    kinds: dict[type[Any], tuple[bytes, Callable[..., None]]] = {}
    for index, branch in enumerate(shape.branches):
        if isinstance(branch, Record):
            kinds[branch.made] = varint(index), _record_encoder(branch)
        else:
            kinds[Rules] = varint(index), _encode_rules
    mark, write = emit.name(), emit.name()
    emit.line(f"{mark}, {write} = {emit.constant(kinds)}[type({of})]", f"add({mark})", f"{write}({of}, add)")


def _encode_rules(rules: Any, add: Add) -> None:
    encoded = rules.text.encode()
    add(varint(len(encoded)))
    add(encoded)
