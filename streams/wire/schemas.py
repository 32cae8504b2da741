"""The .avsc files: found, put together, fingerprinted; the current version of every record and the earlier ones."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastavro.schema import fingerprint as canonical_fingerprint
from fastavro.schema import parse_schema, to_parsing_canonical_form

NAMESPACE: Final = "trajectory_gate"
PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

Schema = Any
"""A schema as JSON: an object, a list (a union) or a name."""


@cache
def directory() -> Path:
    """Return where the .avsc files are: inside an installed package, beside it in a source checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "schemas"
    return installed if installed.is_dir() else package.parent / "schemas"


def names() -> list[str]:
    """Return the names of all records and enums that have a file, sorted."""
    return sorted(path.stem for path in directory().glob("*.avsc"))


@cache
def schema(name: str) -> Mapping[str, Any]:
    """Return the current schema of *name*, complete: what other files define stands where it is first used."""
    found: dict[str, Any] = _complete(f"{NAMESPACE}.{name}", set())
    return found


@cache
def parsed(name: str) -> Schema:
    """Return the current schema as fastavro wants it."""
    return parse_schema(dict(schema(name)))


@cache
def history(name: str) -> tuple[Mapping[str, Any], ...]:
    """Return the released versions of a schema, oldest first."""
    files = sorted((directory() / "history" / name).glob("*.avsc"), key=lambda path: int(path.stem))
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in files)


@cache
def writers(name: str) -> Mapping[bytes, Schema]:
    """Return fingerprint -> schema of every version of *name* that bytes may have been written with."""
    earlier = {fingerprint(version): parse_schema(dict(version)) for version in history(name)}
    return {**earlier, fingerprint(schema(name)): parsed(name)}


@cache
def names_by_fingerprint() -> Mapping[bytes, str]:
    """Return fingerprint -> record for every version of everything, to say what a record in the wrong place is."""
    return {mark: name for name in names() for mark in writers(name)}


def fingerprint(definition: Schema) -> bytes:
    """Return the CRC-64-AVRO fingerprint of a schema as its 8 bytes stand in a single-object header."""
    return bytes.fromhex(canonical_fingerprint(canonical(definition), "CRC-64-AVRO"))


def canonical(definition: Schema) -> str:
    """Return the parsing canonical form: what two schemas share when their bytes are the same."""
    form: str = to_parsing_canonical_form(parse_schema(definition))
    return form


def full_name(name: str) -> str:
    """Return the name with its namespace."""
    return f"{NAMESPACE}.{name}"


def _complete(definition: Schema, defined: set[str]) -> Schema:
    if isinstance(definition, list):
        return [_complete(branch, defined) for branch in definition]
    if isinstance(definition, str):
        if definition in PRIMITIVES or definition in defined:
            return definition
        defined.add(definition)
        return _complete(_read(definition.removeprefix(f"{NAMESPACE}.")), defined)
    whole = dict(definition)
    match whole["type"]:
        case "record":
            whole["fields"] = [{**field, "type": _complete(field["type"], defined)} for field in whole["fields"]]
        case "array":
            whole["items"] = _complete(whole["items"], defined)
        case "map":
            whole["values"] = _complete(whole["values"], defined)
        case _:
            pass
    return whole


@cache
def _read(name: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads((directory() / f"{name}.avsc").read_text(encoding="utf-8"))
    return found
