"""Core records as Avro bytes: what we write other libraries read, and the other way round; old and new releases too."""

import io
import json

import avro.io
import avro.schema
import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.breaker import BreakerState
from streams.core.eval_log import EvalLogRecord
from streams.core.gate import GateState
from streams.core.model import Condition, Decision, Lane, Position, Report, ReportScore, ScoreStatus
from streams.core.state import SessionState
from streams.errors import SchemaMismatch
from streams.wire import Wire, bodies, schemas, shapes
from streams.wire.decoder import more
from streams.wire.encoder import varint
from tests.wire.wire_records import RECORDS, complete, definitions, longs, records

WIRE = Wire()
FEW = settings(max_examples=20, deadline=None)
BODY = 10


def name_of(made):
    return shapes.schema_name(made)


def given_of(made):
    return (7,) * len(shapes.GIVEN.get(made, ()))


def back(made, value):
    return bodies.read_single_object(made, value, 0, given_of(made))


@pytest.mark.parametrize("made", RECORDS)
@FEW
@given(data=st.data())
def test_a_record_comes_back_equal(made, data):
    record = data.draw(records(made))
    found = back(made, WIRE.write_internal(record))
    assert found == record
    assert type(found) is made


@pytest.mark.parametrize("made", RECORDS)
@FEW
@given(data=st.data())
def test_fastavro_reads_and_writes_the_same_bytes(made, data):
    record = data.draw(records(made))
    value = WIRE.write_internal(record)
    parsed = schemas.parsed(name_of(made))
    datum = fastavro.schemaless_reader(io.BytesIO(value[BODY:]), parsed, None, return_named_type=True)
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, parsed, datum)
    assert stream.getvalue() == value[BODY:]
    assert bodies.record_of(made, datum, given_of(made)) == record


@pytest.mark.parametrize("made", RECORDS)
@FEW
@given(data=st.data())
def test_apache_avro_reads_and_writes_the_same_bytes(made, data):
    record = data.draw(records(made))
    value = WIRE.write_internal(record)
    schema = avro.schema.parse(json.dumps(schemas.schema(name_of(made))))
    stream = io.BytesIO(value[BODY:])
    datum = avro.io.DatumReader(schema).read(avro.io.BinaryDecoder(stream))
    assert not stream.read()
    if made is EvalLogRecord:
        return  # some of its events look alike, and this library chooses a branch by the looks of what it writes
    written = io.BytesIO(value[:BODY])
    written.seek(BODY)
    avro.io.DatumWriter(schema).write(datum, avro.io.BinaryEncoder(written))
    assert back(made, written.getvalue()) == record


@given(longs)
def test_a_varint_comes_back(number):
    written = varint(number)
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, "long", number)
    assert written == stream.getvalue()
    raw, end = (written[0], 1) if written[0] < 128 else more(written + b"\0" * 5, 1, written[0])
    assert ((raw >> 1) ^ -(raw & 1), end) == (number, len(written))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_not_written(number):
    with pytest.raises(OverflowError):
        varint(number)


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01", b"\x80" * 20])
def test_a_number_beyond_64_bits_is_not_read(data):
    with pytest.raises(ValueError, match="an integer takes more"):
        more(data, 1, data[0])


def test_blocks_that_state_their_size_are_read():
    gates = {"coherence": GateState(0.5, 1, 2), "b": GateState()}
    value = WIRE.write_internal(SessionState("s", gates=gates))
    block = value[value.index(b"\x04\x12coherence") :]
    items = block[1 : block.index(b"\x02b") + 2 + 10]
    sized = b"\x03" + varint(len(items)) + items
    assert back(SessionState, value.replace(b"\x04" + items, sized)).gates == gates


def droppable():
    """Every field that has a default, with the top-level records whose bytes hold it."""
    for made in RECORDS:
        held = {record["name"] for record in walk(schemas.schema(name_of(made)))}
        for record in sorted(held):
            for field in definitions()[record]["fields"]:
                if "default" in field:
                    yield pytest.param(made, record, field["name"], id=f"{name_of(made)}-{record}.{field['name']}")


def walk(definition):
    """Yield all record definitions inside a schema."""
    if isinstance(definition, list):
        for branch in definition:
            yield from walk(branch)
    elif not isinstance(definition, str):
        if definition["type"] == "record":
            yield definition
        for field in definition.get("fields", []):
            yield from walk(field["type"])
        for part in {"items", "values"} & definition.keys():
            yield from walk(definition[part])


@pytest.mark.parametrize(("made", "record", "field"), list(droppable()))
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_bytes_of_a_release_before_a_field_was_added_are_read(made, record, field, data):
    found = definitions()
    found[record]["fields"] = [item for item in found[record]["fields"] if item["name"] != field]
    earlier = fastavro.parse_schema(complete(name_of(made), found))
    value = rewritten(made, data.draw(records(made)), earlier)
    assert isinstance(bodies.read_body(made, earlier, value, 0, given_of(made)), made)


@pytest.mark.parametrize("made", RECORDS)
@FEW
@given(data=st.data())
def test_bytes_of_a_release_with_more_fields_are_read(made, data):
    found = definitions()
    for definition in found.values():
        if definition["type"] == "record":
            definition["fields"].insert(0, {"name": "added", "type": "string", "default": "later"})
    later = fastavro.parse_schema(complete(name_of(made), found))
    record = data.draw(records(made))
    value = rewritten(made, record, later)
    assert bodies.read_body(made, later, value, 0, given_of(made)) == record


def rewritten(made, record, schema):
    """Return the record in another version's bytes."""
    value = WIRE.write_internal(record)
    parsed = schemas.parsed(name_of(made))
    datum = fastavro.schemaless_reader(io.BytesIO(value[BODY:]), parsed, None, return_named_type=True)
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, datum)
    return stream.getvalue()


def test_a_word_from_a_newer_release_stays_as_it_is():
    state = SessionState("s", runs=())
    assert back(SessionState, WIRE.write_internal(state)) == state
    score = ReportScore("m", 1, "t", 0.5, ScoreStatus.SUCCESS, 0.5, ("wobble", Condition.STALL))
    report = Report(
        "s", "p", Lane.TRACE, "t", 1, 2, Position(0, 1), (), (score,), (), None, "deferred", (), (), "", "0" * 16
    )
    found = back(Report, WIRE.write_internal(report))
    assert found == report
    assert found.scores[0].conditions[1] is Condition.STALL
    assert found.decision not in list(Decision)


def test_another_record_and_bytes_too_many_or_too_few_are_refused():
    value = WIRE.write_internal(SessionState("s"))
    for bad in (value + b"\0", value[:-1], value[:BODY]):
        with pytest.raises(SchemaMismatch):
            back(SessionState, bad)
    with pytest.raises(SchemaMismatch, match="this is a SessionState, not a BreakerState"):
        back(BreakerState, value)


def test_a_negative_length_is_refused():
    value = WIRE.write_internal(SessionState("s" * 100))
    assert value[BODY : BODY + 2] == varint(100)
    for length in (varint(-100), b"\x01"):
        with pytest.raises(SchemaMismatch, match="a length is negative"):
            back(SessionState, value[:BODY] + length + value[BODY + 2 :])


def test_a_field_in_only_one_of_class_and_schema_is_found_out(monkeypatch):
    schema = dict(schemas.schema("GateState"))
    schema["fields"] = schema["fields"][1:]
    monkeypatch.setattr(schemas, "schema", lambda _name: schema)
    with pytest.raises(TypeError, match=r"do not have the same fields: \['peak'\]"):
        shapes.record.__wrapped__(GateState)
