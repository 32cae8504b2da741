"""Schema ids of Confluent framing: from a schema registry, or from a file where there is none."""

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from fastavro.schema import parse_schema

from streams.errors import BadSettings, RegistryUnavailable, SchemaNotRegistered, UnknownSchema
from streams.wire import schemas
from streams.wire.schemas import Schema

# How long an id that the registry does not know is not asked for again, and how many such ids are remembered.
_UNKNOWN_S: Final = 60.0
_UNKNOWN_MAX: Final = 1024
_LARGEST_ANSWER: Final = 16 * 1024 * 1024


class SchemaIds(Protocol):
    """Knows which schema an id stands for, and which id our own schemas have."""

    def schema(self, schema_id: int) -> Schema:
        """Return the schema as fastavro wants it.

        Raises:
            UnknownSchema: nobody registered that id, or it is no Avro schema.
            RegistryUnavailable: the registry does not answer.
        """

    def id_of(self, name: str) -> int:
        """Return the id of the current schema of the record *name*.

        Raises:
            SchemaNotRegistered: it has none, or the registry refuses it.
            RegistryUnavailable: the registry does not answer.
        """


class FileSchemaIds:
    """A JSON object of id -> schema in a file, for tests and for places without a registry."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            BadSettings: it cannot be read, or is no such object.
        """
        self._path = path
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            self._schemas = {int(schema_id): parse_schema(definition) for schema_id, definition in found.items()}
        except Exception as error:  # a schema can be wrong in as many ways as the parser has exceptions
            raise BadSettings(f"schema_ids_file {path} is no JSON object of id -> Avro schema: {error}") from error
        self._ids = {schemas.canonical(known): schema_id for schema_id, known in self._schemas.items()}

    def schema(self, schema_id: int) -> Schema:
        if schema_id not in self._schemas:
            raise UnknownSchema(f"schema id {schema_id} is not in {self._path}")
        return self._schemas[schema_id]

    def id_of(self, name: str) -> int:
        schema_id = self._ids.get(schemas.canonical(schemas.schema(name)))
        if schema_id is None:
            raise SchemaNotRegistered(f"the schema of {name} is not in {self._path}: add it, or write avro or json")
        return schema_id


class RegistrySchemaIds:
    """A registry with Confluent's HTTP API. What it says is kept: an id never changes its meaning.

    Our own schemas are registered under their full names, as subjects.
    """

    def __init__(self, url: str, auth: tuple[str, str] | None = None, timeout_s: float = 10.0) -> None:
        """Nothing is asked yet. *auth* is user and password; they may also stand in the URL."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            # Not the URL itself: a password may stand in it.
            raise BadSettings("schema_registry_url is no http or https URL; it is like https://registry.example:8081")
        if auth is None and parts.username is not None:
            auth = unquote(parts.username), unquote(parts.password or "")
        self._url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json", "Content-Type": "application/json"}
        if auth is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(":".join(auth).encode()).decode()
        self._timeout_s = timeout_s
        self._schemas: dict[int, Schema] = {}
        self._unknown: dict[int, tuple[float, str]] = {}
        self._ids: dict[str, int] = {}

    def schema(self, schema_id: int) -> Schema:
        if schema_id in self._schemas:
            return self._schemas[schema_id]
        since, reason = self._unknown.get(schema_id, (float("-inf"), ""))
        if time.monotonic() - since < _UNKNOWN_S:
            raise UnknownSchema(reason)
        try:
            found = self._schemas[schema_id] = self._look_up(schema_id)
        except UnknownSchema as error:
            if len(self._unknown) >= _UNKNOWN_MAX:
                self._unknown.clear()
            self._unknown[schema_id] = time.monotonic(), str(error)
            raise
        return found

    def id_of(self, name: str) -> int:
        if name not in self._ids:
            subject = quote(schemas.full_name(name), safe="")
            body = {"schema": json.dumps(schemas.schema(name))}
            status, answer = self._ask(f"/subjects/{subject}/versions", body)
            if status != http.HTTPStatus.OK or not isinstance(answer.get("id"), int):
                raise SchemaNotRegistered(f"{self._url} does not take the schema of {name}: {status} {answer}")
            self._ids[name] = answer["id"]
        return self._ids[name]

    def _look_up(self, schema_id: int) -> Schema:
        status, answer = self._ask(f"/schemas/ids/{schema_id}")
        if status != http.HTTPStatus.OK:
            raise UnknownSchema(f"schema id {schema_id} is not in {self._url}: {status} {answer}")
        if answer.get("schemaType", "AVRO") != "AVRO" or answer.get("references"):
            raise UnknownSchema(f"schema id {schema_id} is no Avro schema complete in itself")
        try:
            return parse_schema(json.loads(answer["schema"]))
        except Exception as error:  # as above
            raise UnknownSchema(f"schema id {schema_id} is no Avro schema: {error}") from error

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Mapping[str, Any]]:
        """Ask the registry; an answer that says something about the schema is returned, any other is raised."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers)  # noqa: S310 - http and https only
        try:
            try:
                with urllib.request.urlopen(request, timeout=self._timeout_s) as response:  # noqa: S310
                    return response.status, _json_object(response.read(_LARGEST_ANSWER))
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in {404, 409, 422}:
                        raise RegistryUnavailable(f"{self._url} answers {error.code} {error.reason}") from error
                    return error.code, _json_object(error.read(_LARGEST_ANSWER))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RegistryUnavailable(f"{self._url} does not answer: {error}") from error


def _json_object(answer: bytes) -> Mapping[str, Any]:
    found = json.loads(answer)
    if not isinstance(found, dict):
        raise ValueError("its answer is no JSON object")  # noqa: TRY004 - as json.loads does for what is no JSON
    return found
