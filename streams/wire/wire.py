"""Values to records and records to values, in the formats that the settings choose."""

from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from typing import Any, Literal, TypeVar

import fastavro
import orjson

from streams.core.eval_log import EvalLogRecord
from streams.core.log import LogRecord
from streams.core.model import BreakerReset, Candidate, EvalRequest
from streams.errors import NewerState, SchemaMismatch, SchemaNotRegistered, TooLarge, UnknownSchema
from streams.settings import Settings
from streams.wire import bodies, schemas
from streams.wire.checks import checker
from streams.wire.datums import json_writer
from streams.wire.formats import (
    CONFLUENT_HEADER,
    SINGLE_OBJECT,
    SINGLE_OBJECT_HEADER,
    Fingerprinted,
    Format,
    Framed,
    JsonText,
    confluent_header,
    header_of,
    single_object_header,
)
from streams.wire.inputs import Datum, ScoreInput, TraceInput, score_input, trace_input
from streams.wire.json_datums import datum_reader
from streams.wire.quick_json import quick_reader
from streams.wire.schema_ids import FileSchemaIds, RegistrySchemaIds, SchemaIds
from streams.wire.schemas import Schema
from streams.wire.shapes import schema_name

Made = TypeVar("Made")


class Wire:
    """Reads every format; writes the chosen one."""

    def __init__(
        self,
        output_format: Format | str = Format.AVRO,
        schema_ids: SchemaIds | None = None,
        max_bytes: int | None = None,
        max_own_bytes: int | None = None,
    ) -> None:
        """Without *schema_ids*, Confluent framing is neither read nor written.

        max_bytes: bounds the traces and scores that are written, and what else is where *max_own_bytes* does not.
        """
        self._format = Format(output_format)
        self._schema_ids = schema_ids
        self._max_bytes = max_bytes
        self._max_own_bytes = max_bytes if max_own_bytes is None else max_own_bytes
        self._writers: dict[int, tuple[str, Schema]] = {}
        self._headers: dict[tuple[str, Format], bytes] = {}

    @classmethod
    def of(cls, settings: Settings) -> "Wire":
        """Return the wire as the settings have it.

        Raises:
            BadSettings: the file of schema ids cannot be read, or the registry's URL is none.
        """
        ids: SchemaIds | None = None
        if settings.schema_ids_file is not None:
            ids = FileSchemaIds(settings.schema_ids_file)
        elif settings.schema_registry_url is not None:
            ids = RegistrySchemaIds(settings.schema_registry_url)
        return cls(settings.output_format, ids, settings.max_record_bytes, settings.own_record_bytes)

    def write(self, record: Any, output_format: Format | str | None = None) -> bytes:
        """Return the value of a core record.

        Raises:
            TooLarge: it takes more bytes than are allowed.
            SchemaNotRegistered, RegistryUnavailable: there is no schema id for Confluent framing.
        """
        chosen = self._format if output_format is None else Format(output_format)
        if chosen is Format.AVRO:
            return self.write_internal(record)
        made = type(record)
        if chosen is Format.JSON:
            return _bounded(orjson.dumps(json_writer(made)(record)), made.__name__, self._max_own_bytes)
        parts = [self._header(schema_name(made), chosen)]
        bodies.codec(made).encode(record, parts.append)
        return _bounded(b"".join(parts), made.__name__, self._max_own_bytes)

    def write_internal(self, record: Any) -> bytes:
        """Return the value of a core record for our own stages: Avro, whatever the output format.

        A LogRecord's offset and time are not part of it: Kafka holds them.

        Raises:
            TooLarge: it takes more bytes than are allowed.
        """
        codec = bodies.codec(type(record))
        parts = [codec.header]
        codec.encode(record, parts.append)
        return _bounded(b"".join(parts), codec.name, self._max_own_bytes)

    def write_input(
        self, name: Literal["Trace", "Score"], fields: Mapping[str, Any], output_format: Format | str | None = None
    ) -> bytes:
        """Return the value of a trace or score to publish, checked as its reader will; fields as in the JSON format.

        Raises:
            InvalidValue: a field is missing or has a value that is not allowed.
            TooLarge: it takes more bytes than are allowed.
            SchemaNotRegistered, RegistryUnavailable: there is no schema id for Confluent framing.
        """
        datum: Datum = datum_reader(name)(dict(fields))
        self._checked(name, dict(datum))
        chosen = self._format if output_format is None else Format(output_format)
        if chosen is Format.JSON:
            return self.bounded(orjson.dumps(datum), name)
        return self._write_datum(name, datum, chosen)

    def read(self, made: type[Made], value: bytes | None) -> Made:
        """Read a core record from a value of any format.

        Raises:
            InvalidRecord: the bytes are no such record.
            RegistryUnavailable: the registry does not answer what schema they have.
        """
        return self._read(made, value, ())

    def read_log_record(self, value: bytes | None, offset: int, time: int) -> LogRecord:
        """Read a record of the session log.

        Raises:
            NewerState: a newer version wrote it.
            InvalidRecord: the bytes are no such record.
        """
        return self._read_own(LogRecord, value, (offset, time), "the session log")

    def read_candidate(self, value: bytes | None) -> Candidate | BreakerReset:
        """Read a record of the candidates log.

        Raises:
            NewerState: a newer version wrote it.
            InvalidRecord: the bytes are no such record.
        """
        made: type[Candidate | BreakerReset] = BreakerReset if _is_reset(value) else Candidate
        return self._read_own(made, value, (), "the candidates log")

    def read_eval_log_record(self, value: bytes | None, offset: int, time: int) -> EvalLogRecord:
        """Read a record of the eval log.

        Raises:
            NewerState: a newer version wrote it.
            InvalidRecord: the bytes are no such record.
        """
        return self._read_own(EvalLogRecord, value, (offset, time), "the eval log")

    def read_eval_request(self, value: bytes | None) -> EvalRequest:
        """Read a record of the eval-requests topic.

        Raises:
            NewerState: a newer version wrote it.
            InvalidRecord: the bytes are no such record.
        """
        return self._read_own(EvalRequest, value, (), "the topic of requests to evaluators")

    def read_trace(self, value: bytes | None, key: bytes | None, time: int) -> TraceInput:  # noqa: ARG002
        """Read and check a published trace; *key* names the session where the trace does not.

        Raises:
            InvalidRecord: the bytes are no valid trace; its class says in which way.
            RegistryUnavailable: the registry does not answer what schema they have.
        """
        return trace_input(self._published("Trace", value), key)

    def read_score(self, value: bytes | None, key: bytes | None, time: int) -> ScoreInput:
        """Read and check a published score; *key* and *time* are the record's, for what the score does not say.

        Raises:
            InvalidRecord: the bytes are no valid score; its class says in which way.
            RegistryUnavailable: the registry does not answer what schema they have.
        """
        return score_input(self._published("Score", value), key, time)

    def read_fields(self, name: Literal["Trace", "Score"], value: bytes | None) -> Datum:
        """Return the fields of a published trace or score as the JSON format has them, of whatever format it is.

        Raises:
            InvalidRecord: the bytes are no such record; what its fields hold is not checked.
            RegistryUnavailable: the registry does not answer what schema they have.
        """
        return self._datum(name, value)

    def _read_own(self, made: type[Made], value: bytes | None, given: tuple[Any, ...], where: str) -> Made:
        """Read what one of our own stages has written: a newer one's records must not be passed by."""
        try:
            return self._read(made, value, given)
        except UnknownSchema as error:
            at = f" at offset {given[0]}" if given else ""
            raise NewerState(f"{where} holds a record of a newer version{at}: {error}") from error

    def _read(self, made: type[Made], value: bytes | None, given: tuple[Any, ...]) -> Made:
        if value is not None and value.startswith(SINGLE_OBJECT) and len(value) > SINGLE_OBJECT_HEADER:
            return bodies.read_single_object(made, value, 0, given)
        header = header_of(value)
        assert value is not None
        match header:
            case Fingerprinted():
                raise SchemaMismatch(f"a {schema_name(made)} ends with its header")
            case Framed():
                writer = self._writer(schema_name(made), header.schema_id)
                return bodies.read_body(made, writer, value, CONFLUENT_HEADER, given)
            case _:
                return bodies.record_of(made, datum_reader(schema_name(made))(_json(value)), given)

    def _published(self, name: str, value: bytes | None) -> Datum:
        """Read and check a trace or a score."""
        if value is not None and value.startswith(b"{"):
            with suppress(orjson.JSONDecodeError):
                if (quick := quick_reader(name)(orjson.loads(value))) is not None:
                    return quick
        datum = self._datum(name, value)
        checker(name)(datum)
        return datum

    def _datum(self, name: str, value: bytes | None) -> Datum:
        header = header_of(value)
        assert value is not None
        match header:
            case Fingerprinted():
                writer = bodies.writer_of(name, header.fingerprint)
                datum = bodies.read_datum(name, writer, value, SINGLE_OBJECT_HEADER)
            case Framed():
                datum = bodies.read_datum(name, self._writer(name, header.schema_id), value, CONFLUENT_HEADER)
            case _:
                datum = datum_reader(name)(_json(value))
        found: Datum = datum
        return found

    def _writer(self, name: str, schema_id: int) -> Schema:
        """Return the schema that an id stands for; our own current one as the very object, to be read without resolution."""
        if self._schema_ids is None:
            raise UnknownSchema(f"a value has schema id {schema_id}, and neither a registry nor a file of ids is set")
        known = self._writers.get(schema_id)
        if known is None or known[0] != name:
            writer = self._schema_ids.schema(schema_id)
            if schemas.canonical(writer) == schemas.canonical(schemas.schema(name)):
                writer = schemas.parsed(name)
            known = self._writers[schema_id] = name, writer
        return known[1]

    def _checked(self, name: str, datum: Datum) -> None:
        datum["session_id"] = datum["session_id"] or "of the key"
        checker(name)(datum)
        if name == "Trace":
            trace_input(datum, None)
        else:
            score_input(datum, None, 0)

    def _write_datum(self, name: str, datum: Datum, chosen: Format) -> bytes:
        stream = BytesIO()
        stream.write(self._header(name, chosen))
        fastavro.schemaless_writer(stream, schemas.parsed(name), datum)
        return self.bounded(stream.getvalue(), name)

    def _header(self, name: str, chosen: Format) -> bytes:
        header = self._headers.get((name, chosen))
        if header is None:
            if chosen is Format.AVRO:
                header = single_object_header(schemas.fingerprint(schemas.schema(name)))
            elif self._schema_ids is None:
                raise SchemaNotRegistered(f"{name} needs a schema id: set a registry or a file of ids")
            else:
                header = confluent_header(self._schema_ids.id_of(name))
            self._headers[name, chosen] = header
        return header

    def bounded(self, value: bytes, name: str) -> bytes:
        """Return the value of a trace or score, which may be someone else's.

        Raises:
            TooLarge: it takes more bytes than are allowed.
        """
        return _bounded(value, name, self._max_bytes)


def _bounded(value: bytes, name: str, most: int | None) -> bytes:
    if most is not None and len(value) > most:
        raise TooLarge(f"a {name} takes {len(value)} bytes, allowed are {most}")
    return value


def _is_reset(value: bytes | None) -> bool:
    """Whether a record of the candidates log is meant as a reset: by its schema, or as JSON that has no notice."""
    header = header_of(value)
    assert value is not None
    match header:
        case Fingerprinted():
            return schemas.names_by_fingerprint().get(header.fingerprint) == BreakerReset.__name__
        case JsonText():
            return "notice" not in _json(value)
        case _:
            return False


def _json(value: bytes) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise SchemaMismatch(f"this is no JSON: {error}") from error
