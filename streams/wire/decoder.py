"""Avro binary to core records: one function a record, compiled from its shape, for bytes of the current schema."""

import json
import struct
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final

from streams.core.rules import Rules
from streams.errors import NewerState
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

Decode = Callable[..., tuple[Any, int]]

_CONTINUATIONS: Final = sum(128 << shift for shift in range(0, 35, 7))


def more(data: bytes, at: int, number: int) -> tuple[int, int]:
    """Finish a varint whose first byte was *number*; returns it, zigzag still on, and where the next value starts."""
    if len(data) - at > 4:
        # Five bytes more is what every time since 2004 takes: worth not looping over.
        b, c, d, e, f = data[at : at + 5]
        if b > 127 and c > 127 and d > 127 and e > 127 and f < 128:
            return number + (b << 7) + (c << 14) + (d << 21) + (e << 28) + (f << 35) - _CONTINUATIONS, at + 5
    number &= 127
    shift = 7
    while (byte := data[at]) > 127:
        number |= (byte & 127) << shift
        at += 1
        shift += 7
        if shift > 63:
            raise ValueError("an integer takes more than ten bytes")
    number |= byte << shift
    if number >= 1 << 64:
        raise ValueError("an integer takes more than 64 bits")
    return number, at + 1


def text(data: bytes, at: int) -> tuple[str, int]:
    """Return the string at *at*, and where the next value starts."""
    number = data[at]
    at += 1
    if number > 127:
        number, at = more(data, at, number)
    if number & 1:
        raise ValueError("a length is negative")
    end = at + (number >> 1)
    return data[at:end].decode(), end


def unpack(data: bytes) -> tuple[int, ...]:
    """Return what `pack` made bytes of."""
    return struct.unpack(f"<{len(data) // 8}q", data)


@lru_cache(maxsize=64)
def rules_of(text: str) -> Rules:
    """Read the text of a rules record.

    Raises:
        NewerState: it holds a setting that this version does not know.
        ValueError: it is no such text.
    """
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("rules are no JSON object")  # noqa: TRY004 - bytes that do not fit are a ValueError here
    if unknown := found.keys() - {item.name for item in fields(Rules)}:
        raise NewerState(
            f"the rules hold {', '.join(sorted(unknown))}, which only a newer version knows: start that one"
        )
    return Rules.from_text(text)


@once
def decoder(made: type[Any]) -> Decode:
    """Return what reads a core class: takes bytes, where to start and the fields not in them; returns value and end.

    For bytes that are no such record it raises ValueError, LookupError, struct.error or OverflowError, or ends
    beyond the last byte.
    """
    return _record_decoder(record(made))


@once
def _record_decoder(shape: Record) -> Decode:
    constants = {"more": more, "text": text, "unpack": unpack, "double": struct.Struct("<d").unpack_from}
    emit = Emitter({**constants, "rules_of": rules_of, "made": shape.made, "new": tuple.__new__})
    found: dict[str, str] = {name: name for name in shape.given}
    with emit.block(f"def decode({', '.join(['data', 'at', *shape.given])}):"):
        for name, field in shape.fields:
            found[name] = emit.name()
            _emit(emit, field, found[name])
        emit.line(f"return {_construction(shape, found)}, at")
    return emit.function("decode")


def _construction(shape: Record, found: dict[str, str]) -> str:
    if issubclass(shape.made, tuple):
        # What a NamedTuple's own constructor does, without the call in between.
        return f"new(made, ({', '.join(found[name] for name in field_names(shape.made))},))"
    return f"made({', '.join(f'{name}={held}' for name, held in found.items())})"


def _emit(emit: Emitter, shape: Shape, to: str) -> None:
    """Emit the lines that read a value into the variable *to*."""
    match shape:
        case Plain():
            _emit_plain(emit, shape.kind, to)
        case Choice():
            _emit_choice(emit, shape, to)
        case Maybe():
            with emit.block("if (n := data[at]) == 0:"):
                emit.line("at += 1", f"{to} = None")
            with emit.block("elif n == 2:"):
                emit.line("at += 1")
                _emit(emit, shape.held, to)
            with emit.block("else:"):
                emit.line("raise ValueError('a union has no such branch')")
        case Packed():
            _emit_natural(emit)
            emit.line(f"{to} = unpack(data[at : at + n])", "at += n")
        case Rows() | Table() | Entries():
            _emit_items(emit, shape, to)
        case Parts():
            _emit_parts(emit, shape, to)
        case RulesText():
            _emit_plain(emit, "string", to)
            emit.line(f"{to} = rules_of({to})")
        case Record():
            emit.line(f"{to}, at = {emit.constant(_record_decoder(shape))}(data, at)")
        case OneOf():
            branches = [_branch(branch) for branch in shape.branches]
            _emit_natural(emit)
            emit.line(f"{to}, at = {emit.constant(branches)}[n](data, at)")


def _emit_plain(emit: Emitter, kind: str, to: str) -> None:
    match kind:
        case "string":
            with emit.block("if (n := data[at]) & 129:"):  # longer than 63 bytes, or negative
                emit.line(f"{to}, at = text(data, at)")
            with emit.block("else:"):
                emit.line(f"{to} = data[at + 1 : (at := at + 1 + (n >> 1))].decode()")
        case "double":
            emit.line(f"{to}, = double(data, at)", "at += 8")
        case "boolean":
            with emit.block("if (n := data[at]) > 1:"):
                emit.line("raise ValueError('a boolean is neither 0 nor 1')")
            emit.line("at += 1", f"{to} = n == 1")
        case _:
            _emit_varint(emit)
            emit.line(f"{to} = (n >> 1) ^ -(n & 1)")


def _emit_varint(emit: Emitter) -> None:
    emit.line("n = data[at]", "at += 1")
    with emit.block("if n > 127:"):
        emit.line("n, at = more(data, at, n)")


def _emit_natural(emit: Emitter) -> None:
    """Emit the reading of a length or an index into n."""
    _emit_varint(emit)
    with emit.block("if n & 1:"):
        emit.line("raise ValueError('a length or an index is negative')")
    emit.line("n >>= 1")


def _emit_choice(emit: Emitter, shape: Choice, to: str) -> None:
    if shape.symbols is not None:
        _emit_natural(emit)
        emit.line(f"{to} = {emit.constant([shape.members(symbol) for symbol in shape.symbols])}[n]")
        return
    _emit_plain(emit, "string", to)
    # A newer writer may know more of them: what has no name here yet stays plain text.
    emit.line(f"{to} = {emit.constant({str(member): member for member in shape.members})}.get({to}, {to})")


def _emit_items(emit: Emitter, shape: Rows | Table | Entries, to: str) -> None:
    """Emit the reading of the blocks of an array or map; a block of negative count states its size in bytes too."""
    item, key, left = emit.name(), emit.name(), emit.name()
    emit.line(f"{to} = {'[]' if isinstance(shape, Rows) else '{}'}")
    with emit.block(f"while {left} := data[at]:"):
        emit.line("at += 1")
        with emit.block(f"if {left} > 127:"):
            emit.line(f"{left}, at = more(data, at, {left})")
        with emit.block(f"if {left} & 1:"):
            _emit_varint(emit)
            emit.line(f"{left} += 1")
        with emit.block(f"for {left} in range({left} >> 1):"):
            match shape:
                case Rows():
                    _emit(emit, shape.item, item)
                    emit.line(f"{to}.append({item})")
                case Table():
                    _emit_plain(emit, "string", key)
                    _emit(emit, shape.value, item)
                    emit.line(f"{to}[{key}] = {item}")
                case Entries():
                    _emit_side(emit, shape.key, key)
                    _emit_side(emit, shape.value, item)
                    emit.line(f"{to}[{key}] = {item}")
    emit.line("at += 1")
    if isinstance(shape, Rows):
        emit.line(f"{to} = tuple({to})")


def _emit_side(emit: Emitter, side: Parts, to: str) -> None:
    if len(side.fields) == 1:
        _emit(emit, side.fields[0][1], to)
    else:
        _emit_parts(emit, side, to)


def _emit_parts(emit: Emitter, shape: Parts, to: str) -> None:
    names = [emit.name() for _ in shape.fields]
    for name, (_, part) in zip(names, shape.fields, strict=True):
        _emit(emit, part, name)
    emit.line(f"{to} = ({', '.join(names)},)")


def _branch(branch: Record | RulesText) -> Decode:
    return _record_decoder(branch) if isinstance(branch, Record) else _rules_decoder()


@once
def _rules_decoder() -> Decode:
    emit = Emitter({"text": text, "rules_of": rules_of})
    with emit.block("def decode(data, at):"):
        _emit(emit, RulesText(), "found")
        emit.line("return found, at")
    return emit.function("decode")
