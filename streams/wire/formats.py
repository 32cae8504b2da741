"""The three formats of a value, told apart by the first byte: Avro single-object, Confluent framing, JSON."""

import struct
from enum import StrEnum
from typing import Final, NamedTuple

from streams.errors import SchemaMismatch, UnknownFormat

SINGLE_OBJECT: Final = b"\xc3\x01"
SINGLE_OBJECT_HEADER: Final = 10
CONFLUENT_HEADER: Final = 5


class Format(StrEnum):
    """How a value is written."""

    AVRO = "avro"
    """C3 01, the schema's fingerprint in 8 bytes, least significant first, Avro binary."""
    CONFLUENT = "confluent"
    """00, a schema registry's id in 4 bytes, most significant first, Avro binary."""
    JSON = "json"
    """One JSON object on one line."""


class Fingerprinted(NamedTuple):
    """A value in Avro single-object encoding; its body starts at `SINGLE_OBJECT_HEADER`."""

    fingerprint: bytes


class Framed(NamedTuple):
    """A value in Confluent framing; its body starts at `CONFLUENT_HEADER`."""

    schema_id: int


class JsonText(NamedTuple):
    """A value that is a JSON object."""


def header_of(value: bytes | None) -> Fingerprinted | Framed | JsonText:
    """Say how a value is written.

    Raises:
        UnknownFormat: none of the three.
        SchemaMismatch: it ends inside its header.
    """
    if not value:
        raise UnknownFormat("the record has no value")
    if value.startswith(SINGLE_OBJECT):
        if len(value) < SINGLE_OBJECT_HEADER:
            raise SchemaMismatch(f"an Avro header takes {SINGLE_OBJECT_HEADER} bytes, here are {len(value)}")
        return Fingerprinted(value[2:SINGLE_OBJECT_HEADER])
    if value[0] == 0:
        if len(value) < CONFLUENT_HEADER:
            raise SchemaMismatch(f"a schema id takes {CONFLUENT_HEADER} bytes, here are {len(value)}")
        return Framed(int.from_bytes(value[1:CONFLUENT_HEADER], "big"))
    if value[0] == ord("{"):
        return JsonText()
    raise UnknownFormat(f"a value starts with C3 01 (Avro), 00 (schema id) or {{ (JSON), not with {value[:2].hex(' ')}")


def single_object_header(fingerprint: bytes) -> bytes:
    """Return the header of Avro single-object encoding."""
    return SINGLE_OBJECT + fingerprint


def confluent_header(schema_id: int) -> bytes:
    """Return the header of Confluent framing."""
    return struct.pack(">bI", 0, schema_id)
