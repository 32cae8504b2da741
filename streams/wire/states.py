"""The stored form of states: one byte of codec version, then Avro single-object encoding."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import Any, Final, TypeVar

import fastavro

from streams.errors import NewerState, SchemaMismatch, UnknownSchema, UnreadableState
from streams.wire import bodies, schemas
from streams.wire.formats import SINGLE_OBJECT, SINGLE_OBJECT_HEADER, single_object_header
from streams.wire.inputs import Datum

CODEC_VERSION: Final = 1
"""Grows when a state of this version may mislead an older release although its schema could be read."""

_PREFIX: Final = bytes([CODEC_VERSION])
_BODY: Final = len(_PREFIX) + SINGLE_OBJECT_HEADER
_KEPT_TRACE: Final = "KeptTrace"

State = TypeVar("State")


def encode_state(state: Any) -> bytes:
    """Return the stored form of a core state."""
    codec = bodies.codec(type(state))
    parts = [_PREFIX, codec.header]
    codec.encode(state, parts.append)
    return b"".join(parts)


def decode_state(made: type[State], stored: bytes) -> State:
    """Read a stored state, also one that an older release wrote.

    Raises:
        NewerState: a newer version wrote it.
        UnreadableState: it is no such state.
    """
    with _read_as(made.__name__, stored):
        return bodies.read_single_object(made, stored, len(_PREFIX))


def encode_kept_trace(whole: Datum, ingested_at: int) -> bytes:
    """Return the stored form of a whole trace, fields as the schema Trace has them."""
    stream = BytesIO()
    stream.write(_kept_trace_head())
    datum = {"ingested_at": ingested_at, "started_at": whole["started_at"], "trace": whole}
    fastavro.schemaless_writer(stream, schemas.parsed(_KEPT_TRACE), datum)
    return stream.getvalue()


def decode_kept_trace(stored: bytes) -> Datum:
    """Read a whole trace; raises as decode_state does."""
    with _read_as(_KEPT_TRACE, stored):
        writer = bodies.writer_of(_KEPT_TRACE, stored[_BODY - 8 : _BODY])
        whole: Datum = bodies.read_datum(_KEPT_TRACE, writer, stored, _BODY)["trace"]
        return whole


def kept_trace_times(stored: bytes) -> tuple[int, int]:
    """Return ingested_at and started_at of a whole trace without reading it; raises as decode_state does."""
    with _read_as(_KEPT_TRACE, stored):
        bodies.writer_of(_KEPT_TRACE, stored[_BODY - 8 : _BODY])
        stream = BytesIO(stored)
        stream.seek(_BODY)
        try:
            return fastavro.schemaless_reader(stream, "long", None), fastavro.schemaless_reader(stream, "long", None)
        except EOFError as error:
            raise SchemaMismatch("it ends within its head") from error


@cache
def _kept_trace_head() -> bytes:
    return _PREFIX + single_object_header(schemas.fingerprint(schemas.schema(_KEPT_TRACE)))


@contextmanager
def _read_as(name: str, stored: bytes) -> Iterator[None]:
    """Check how a stored state begins, and say of one that cannot be read what it means for the worker."""
    version = stored[0] if stored else 0
    if version > CODEC_VERSION:
        raise NewerState(f"a stored {name} has codec version {version}, this release reads up to {CODEC_VERSION}")
    if version < 1 or stored[1:3] != SINGLE_OBJECT:
        raise UnreadableState(f"a stored {name} does not start as one: {stored[:3].hex(' ')}")
    try:
        yield
    except UnknownSchema as error:
        raise NewerState(
            f"a stored {name} was written with a schema that only a newer release knows: {error}"
        ) from error
    except SchemaMismatch as error:
        raise UnreadableState(f"a stored {name} cannot be read: {error}") from error
