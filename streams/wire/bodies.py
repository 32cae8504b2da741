"""Avro bodies of core records: read with the schema they were written with, the current one on a fast path."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeVar

import fastavro

from streams.errors import SchemaMismatch, TgateError, UnknownSchema
from streams.wire import schemas
from streams.wire.datums import from_datum
from streams.wire.decoder import decoder
from streams.wire.encoder import encoder
from streams.wire.formats import SINGLE_OBJECT_HEADER, single_object_header
from streams.wire.once import once
from streams.wire.schemas import Schema
from streams.wire.shapes import schema_name

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Codec:
    """What the current schema of a core class amounts to."""

    name: str
    header: bytes
    """Of single-object encoding."""
    encode: Callable[[Any, Callable[[bytes], None]], None]
    decode: Callable[..., tuple[Any, int]]


@once
def codec(made: type[Any]) -> Codec:
    """Return the codec of a core class."""
    name = schema_name(made)
    header = single_object_header(schemas.fingerprint(schemas.schema(name)))
    return Codec(name, header, encoder(made), decoder(made))


def read_single_object(made: type[Made], value: bytes, start: int = 0, given: tuple[Any, ...] = ()) -> Made:
    """Read the single-object encoding that starts at *start*; *given* are the fields that it does not hold.

    Raises:
        UnknownSchema: no version of the record's schema has that fingerprint.
        SchemaMismatch: the bytes are no such record.
    """
    current = codec(made)
    body = start + SINGLE_OBJECT_HEADER
    if not value.startswith(current.header, start):
        return read_body(made, writer_of(current.name, value[start + 2 : body]), value, body, given)
    try:
        found, end = current.decode(value, body, *given)
    except TgateError:
        raise
    except Exception as error:  # running off the end, lengths that cannot be, text that is no UTF-8
        raise SchemaMismatch(f"this is no {current.name}: {error!r}") from error
    if end != len(value):
        raise SchemaMismatch(f"a {current.name} ends at byte {end} of {len(value)}")
    result: Made = found
    return result


def read_body(made: type[Made], writer: Schema, value: bytes, start: int, given: tuple[Any, ...] = ()) -> Made:
    """Read a body written with the schema *writer*.

    Raises:
        SchemaMismatch: the bytes are no such record.
    """
    return record_of(made, read_datum(schema_name(made), writer, value, start, named=True), given)


def record_of(made: type[Made], datum: Any, given: tuple[Any, ...] = ()) -> Made:
    """Return the core record that a datum holds.

    Raises:
        SchemaMismatch: it holds none.
    """
    try:
        found: Made = from_datum(made)(datum, *given)
    except TgateError:
        raise
    except Exception as error:  # rules that are none, packed numbers cut short
        raise SchemaMismatch(f"this is no {schema_name(made)}: {error!r}") from error
    return found


def read_datum(name: str, writer: Schema, value: bytes, start: int, *, named: bool = False) -> Any:
    """Read a body written with the schema *writer* as a datum of the current schema of *name*.

    *named*: a value of a named type inside a union comes as a pair of name and value.

    Raises:
        SchemaMismatch: the bytes are no such record.
    """
    stream = BytesIO(value)
    stream.seek(start)
    reader = schemas.parsed(name)
    try:
        datum = fastavro.schemaless_reader(
            stream, writer, None if writer is reader else reader, return_named_type=named
        )
    except Exception as error:  # fastavro raises whatever the bytes lead it into
        raise SchemaMismatch(f"this is no {name}: {error!r}") from error
    if stream.tell() != len(value):
        raise SchemaMismatch(f"after the {name} come {len(value) - stream.tell()} more bytes")
    return datum


def writer_of(name: str, fingerprint: bytes) -> Schema:
    """Return the version of a record's schema that a fingerprint names.

    Raises:
        SchemaMismatch: it is the fingerprint of another record.
        UnknownSchema: it is none of ours.
    """
    found = schemas.writers(name).get(fingerprint)
    if found is not None:
        return found
    if other := schemas.names_by_fingerprint().get(fingerprint):
        raise SchemaMismatch(f"this is a {other}, not a {name}")
    raise UnknownSchema(f"fingerprint {fingerprint.hex()} is no known version of {name}")
