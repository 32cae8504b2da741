"""The schemas are complete, documented, and may only change so that old and new releases read each other."""

import json

import avro.schema
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from fastavro.schema import parse_schema

from streams.wire import schemas
from tests.wire.wire_records import TOP, complete, definitions

UNITS = {
    "time",
    "started_at",
    "ended_at",
    "created_at",
    "decided_at",
    "requested_at",
    "as_of",
    "since",
    "last_activity",
}


def apache(schema):
    return avro.schema.parse(json.dumps(schema))


def incompatibilities(reader, writer):
    """Say why *reader* cannot read what *writer* wrote."""
    found = ReaderWriterCompatibilityChecker().get_compatibility(apache(reader), apache(writer))
    return (
        [] if found.compatibility is SchemaCompatibilityType.compatible else [*found.messages, found.incompatibilities]
    )


def compatible(one, other):
    """FULL compatibility: each reads what the other wrote."""
    return not incompatibilities(one, other) and not incompatibilities(other, one)


@pytest.mark.parametrize("name", schemas.names())
def test_each_file_defines_one_thing_and_documents_all_of_it(name):
    definition = definitions()[name]
    assert (definition["name"], definition["namespace"]) == (name, "trajectory_gate")
    assert definition["doc"].endswith(".")
    for field in definition.get("fields", []):
        assert len(field["doc"]) > 8, field["name"]
        assert field["doc"].endswith("."), field["name"]
        if field["name"] in UNITS:
            assert "milliseconds since 1970, UTC" in field["doc"] or "record's time" in field["doc"], field["name"]


@pytest.mark.parametrize("name", TOP)
def test_fingerprints_are_those_of_apache_avro(name):
    schema = schemas.schema(name)
    assert schemas.fingerprint(schema) == apache(schema).fingerprint("CRC-64-AVRO")
    assert complete(name, definitions()) == schema


def test_no_two_schemas_share_a_fingerprint():
    assert len(schemas.names_by_fingerprint()) >= len(schemas.names())


@pytest.mark.parametrize("name", TOP)
def test_every_released_version_and_the_current_one_read_each_other(name):
    released = schemas.history(name)
    assert released, f"schemas/history/{name}/1.avsc is missing"
    for version in released:
        assert compatible(schemas.schema(name), version)
        assert schemas.fingerprint(version) in schemas.writers(name)


def edited(change):
    found = definitions()
    change(found)
    return found


def removes_a_field_without_default(found):
    del found["ReportScore"]["fields"][0]


def adds_a_field_without_default(found):
    found["ReportScore"]["fields"].append({"name": "colour", "type": "string"})


def changes_a_type(found):
    found["ReportScore"]["fields"][0]["type"] = "long"


def widens_a_type(found):
    next(field for field in found["ReportScore"]["fields"] if field["name"] == "tier")["type"] = ["null", "long"]


def renames_a_field(found):
    found["ReportScore"]["fields"][0]["name"] = "metric_name"


def adds_a_symbol(found):
    found["ScoreStatus"]["symbols"].append("SKIPPED")


def removes_a_symbol(found):
    found["ScoreStatus"]["symbols"].remove("PENDING")


def allows_null(found):
    found["ReportScore"]["fields"][0]["type"] = ["null", "string"]


@pytest.mark.parametrize("name", ["Report", "Notice", "Candidate", "JournalEntry"])
@pytest.mark.parametrize(
    "change",
    [
        removes_a_field_without_default,
        adds_a_field_without_default,
        changes_a_type,
        widens_a_type,
        renames_a_field,
        adds_a_symbol,
        removes_a_symbol,
        allows_null,
    ],
)
def test_an_incompatible_edit_is_refused_however_deep(name, change):
    assert not compatible(complete(name, edited(change)), schemas.schema(name))


def adds_a_field_with_default(found):
    found["ReportScore"]["fields"].append({"name": "colour", "type": ["null", "string"], "default": None})


def removes_a_field_with_default(found):
    found["ReportScore"]["fields"] = [field for field in found["ReportScore"]["fields"] if field["name"] != "peak"]


def reorders_fields(found):
    found["ReportScore"]["fields"].reverse()


@pytest.mark.parametrize("change", [adds_a_field_with_default, removes_a_field_with_default, reorders_fields])
def test_a_compatible_edit_is_accepted_and_has_another_fingerprint(change):
    schema = complete("Report", edited(change))
    assert compatible(schema, schemas.schema("Report"))
    assert schemas.fingerprint(schema) != schemas.fingerprint(schemas.schema("Report"))


def test_documentation_does_not_change_the_bytes():
    found = definitions()
    found["ReportScore"]["doc"] = "Other words."
    assert schemas.fingerprint(complete("Report", found)) == schemas.fingerprint(schemas.schema("Report"))


def test_defaults_are_valid_for_their_types():
    for name in TOP:
        parse_schema(schemas.schema(name) | {}, _force=True)
        apache(schemas.schema(name))


def test_schemas_are_found_in_an_installed_package(tmp_path, monkeypatch):
    module = tmp_path / "streams" / "wire" / "schemas.py"
    (tmp_path / "streams" / "schemas").mkdir(parents=True)
    monkeypatch.setattr(schemas, "__file__", str(module))
    assert schemas.directory.__wrapped__() == tmp_path / "streams" / "schemas"
