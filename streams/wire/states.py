"""The stored form of states: one byte of codec version, then Avro single-object encoding."""

from typing import Any, Final, TypeVar

from streams.errors import NewerState, SchemaMismatch, UnknownSchema, UnreadableState
from streams.wire import bodies
from streams.wire.formats import SINGLE_OBJECT

CODEC_VERSION: Final = 1
"""Grows when a state of this version may mislead an older release although its schema could be read."""

_PREFIX: Final = bytes([CODEC_VERSION])

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
    name = made.__name__
    version = stored[0] if stored else 0
    if version > CODEC_VERSION:
        raise NewerState(f"a stored {name} has codec version {version}, this release reads up to {CODEC_VERSION}")
    if version < 1 or stored[1:3] != SINGLE_OBJECT:
        raise UnreadableState(f"a stored {name} does not start as one: {stored[:3].hex(' ')}")
    try:
        return bodies.read_single_object(made, stored, 1)
    except UnknownSchema as error:
        raise NewerState(
            f"a stored {name} was written with a schema that only a newer release knows: {error}"
        ) from error
    except SchemaMismatch as error:
        raise UnreadableState(f"a stored {name} cannot be read: {error}") from error
