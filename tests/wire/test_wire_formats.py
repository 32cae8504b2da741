"""The three formats of a value, and the file that stands in for a schema registry."""

import io
import json
import struct

import fastavro
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.log import LogRecord, PartitionState
from streams.core.model import (
    BreakerReset,
    Candidate,
    Condition,
    Lane,
    Notice,
    Position,
    ReportScore,
    ScoreStatus,
    Severity,
)
from streams.core.rules import Rules
from streams.core.session import Tick
from streams.errors import (
    BadSettings,
    InvalidValue,
    NewerState,
    SchemaMismatch,
    SchemaNotRegistered,
    TooLarge,
    UnknownFormat,
    UnknownSchema,
)
from streams.settings import Settings
from streams.wire import FileSchemaIds, Format, Wire, schemas, shapes
from tests.wire.wire_records import OUTPUTS, complete, definitions, records

FEW = settings(max_examples=20, deadline=None)

NOTICE = Notice(
    "0123456789abcdef0123456789abcdef",
    "shop",
    "s-1",
    "t-1",
    Lane.TRACE,
    Severity.TREND,
    ("stall:task_completion",),
    (ReportScore("task_completion", 1, "t-1", 0.3, ScoreStatus.SUCCESS, 0.5, (Condition.STALL,)),),
    ("t-1",),
    (("t-1", "task_completion", 0.3), (None, "outcome_correct", 1.0)),
    "task_completion 0.3 on trace t-1: stalled",
    1_700_000_000_000,
    shadow=False,
    rules_hash="0" * 16,
)
CANDIDATE = Candidate(NOTICE, Position(0, 5), 0, 5, 600_000, capture_case=False, input=None)
RESET = BreakerReset("shop", 1, "looked")


@pytest.fixture
def ids(tmp_path):
    """Ids of all outputs, from 100 on."""
    names = [shapes.schema_name(made) for made in (*OUTPUTS, LogRecord)] + ["Trace", "Score"]
    path = tmp_path / "ids.json"
    path.write_text(json.dumps({str(100 + at): schemas.schema(name) for at, name in enumerate(names)}))
    return FileSchemaIds(path)


@pytest.mark.parametrize("made", OUTPUTS)
@FEW
@given(data=st.data())
def test_json_comes_back_equal(made, data):
    record = data.draw(records(made))
    value = Wire(Format.JSON).write(record)
    assert b"\n" not in value
    found = Wire().read(made, value)
    assert found == record
    assert type(found) is made


@FEW
@given(record=records(LogRecord))
def test_a_union_in_json_names_its_record(record):
    assert Wire().read_log_record(Wire("json").write(record), 7, 7) == record


def test_a_notice_in_json_reads_well():
    value = Wire("json").write(NOTICE)
    assert value.startswith(
        b'{"notice_id":"0123456789abcdef0123456789abcdef","severity":"trend",'
        b'"summary":"task_completion 0.3 on trace t-1: stalled","signatures":["stall:task_completion"],'
    )
    shown = json.loads(value)
    assert shown["values"][0] == {"trace_id": "t-1", "metric": "task_completion", "value": 0.3}
    assert (shown["lane"], shown["scores"][0]["conditions"]) == ("trace", ["stall"])


def test_json_of_a_newer_release_is_read():
    shown = json.loads(Wire("json").write(NOTICE)) | {"colour": "red"}
    del shown["shadow"]
    assert Wire().read(Notice, orjson.dumps(shown)) == NOTICE


def test_json_that_does_not_fit_says_where():
    shown = json.loads(Wire("json").write(NOTICE))
    shown["scores"][0]["threshold"] = "high"
    with pytest.raises(InvalidValue, match=r"scores\[0\].threshold is 'high', expected a number"):
        Wire().read(Notice, orjson.dumps(shown))


def test_stored_positions_have_no_json():
    with pytest.raises(TypeError, match="no JSON form"):
        Wire("json").write(PartitionState())


@pytest.mark.parametrize("output_format", Format)
def test_every_format_comes_back(ids, output_format):
    wire = Wire(output_format, ids)
    value = wire.write(NOTICE)
    assert value[:1] == {"avro": b"\xc3", "confluent": b"\0", "json": b"{"}[output_format]
    assert wire.read(Notice, value) == NOTICE
    assert wire.write_internal(NOTICE)[:2] == b"\xc3\x01"


def test_single_object_encoding_is_that_of_the_specification():
    value = Wire().write(NOTICE)
    assert value[2:10] == schemas.fingerprint(schemas.schema("Notice"))
    datum = fastavro.schemaless_reader(io.BytesIO(value[10:]), schemas.parsed("Notice"), None)
    assert datum["summary"] == NOTICE.summary


def test_confluent_framing_is_a_zero_and_four_bytes(ids):
    wire = Wire("confluent", ids)
    value = wire.write(NOTICE)
    assert value[:5] == struct.pack(">bI", 0, ids.id_of("Notice"))
    assert value[5:] == Wire().write(NOTICE)[10:]


def test_confluent_framing_by_another_version_is_resolved(tmp_path):
    found = definitions()
    found["Score"]["fields"] = [field for field in found["Score"]["fields"] if field["name"] != "eval_run_id"]
    found["Score"]["fields"].insert(0, {"name": "judge", "type": "string"})
    foreign = complete("Score", found) | {"namespace": "somebody.else"}
    (tmp_path / "ids.json").write_text(json.dumps({"7": foreign}))
    score = dict.fromkeys((field["name"] for field in foreign["fields"]), None)
    score |= {"judge": "me", "score_id": "a", "session_id": "s", "name": "m", "target": "TRACE", "value": "0.5"}
    score |= {"data_type": "NUMERIC", "source": "AUTOMATED", "status": "SUCCESS", "metadata": "{}"}
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(foreign), score)
    wire = Wire("avro", FileSchemaIds(tmp_path / "ids.json"))
    assert wire.read_score(b"\0\0\0\0\x07" + stream.getvalue(), None, 5).score.value == 0.5


def test_an_id_that_nobody_knows(ids):
    with pytest.raises(UnknownSchema, match="schema id 9 is not in"):
        Wire("avro", ids).read(Notice, b"\0\0\0\0\x09\0")
    with pytest.raises(UnknownSchema, match="neither a registry nor a file"):
        Wire().read(Notice, b"\0\0\0\0\x09\0")


def test_an_id_of_another_record(ids):
    value = Wire("confluent", ids).write(RESET)
    with pytest.raises(SchemaMismatch):
        Wire("avro", ids).read(Notice, value)


def test_framing_needs_an_id(tmp_path):
    with pytest.raises(SchemaNotRegistered, match="set a registry or a file"):
        Wire("confluent").write(NOTICE)
    (tmp_path / "ids.json").write_text("{}")
    with pytest.raises(SchemaNotRegistered, match="Notice is not in"):
        Wire("confluent", FileSchemaIds(tmp_path / "ids.json")).write(NOTICE)


@pytest.mark.parametrize("text", ["", "[]", '{"a": "string"}', '{"1": {"type": "no such"}}'])
def test_a_file_of_ids_that_is_none(tmp_path, text):
    (tmp_path / "ids.json").write_text(text)
    with pytest.raises(BadSettings, match="schema_ids_file"):
        FileSchemaIds(tmp_path / "ids.json")
    with pytest.raises(BadSettings, match="schema_ids_file"):
        FileSchemaIds(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, UnknownFormat),
        (b"", UnknownFormat),
        (b"hello", UnknownFormat),
        (b"[1]", UnknownFormat),
        (b"\xc3", UnknownFormat),
        (b"\xc3\x01abc", SchemaMismatch),
        (b"\xc3\x01" + b"?" * 8 + b"x", UnknownSchema),
        (b"\0ab", SchemaMismatch),
        (b"\0\0\0\0\1", UnknownSchema),
        (b"{", SchemaMismatch),
        (b'{"a": NaN}', SchemaMismatch),
        (b"{}", InvalidValue),
    ],
)
def test_what_is_no_record_says_why(value, error):
    for read in (
        lambda: Wire().read(Notice, value),
        lambda: Wire().read_trace(value, b"k", 1),
        lambda: Wire().read_score(value, b"k", 1),
    ):
        with pytest.raises(error) as found:
            read()
        assert type(found.value) is error


def test_the_candidates_log_holds_two_records():
    for output_format in ("avro", "json"):
        wire = Wire(output_format)
        assert wire.read_candidate(wire.write(CANDIDATE)) == CANDIDATE
        assert wire.read_candidate(wire.write(RESET)) == RESET


def test_our_own_logs_by_a_newer_version_stop_the_worker():
    value = b"\xc3\x01" + b"?" * 8 + b"x"
    with pytest.raises(NewerState, match="at offset 7"):
        Wire().read_log_record(value, 7, 7)
    with pytest.raises(NewerState):
        Wire().read_candidate(value)
    rules = Wire().write_internal(LogRecord(7, 7, Rules()))
    newer = rules.replace(b'"gate_gain"', b'"gate_gaim"')
    with pytest.raises(NewerState, match="gate_gaim"):
        Wire().read_log_record(newer, 7, 7)
    with pytest.raises(SchemaMismatch):
        Wire().read_log_record(rules.replace(b'"gate_gain":', b'"gate_gain" '), 7, 7)


def test_a_log_record_takes_offset_and_time_from_kafka():
    value = Wire().write_internal(LogRecord(-1, -1, Tick(5, ("traces/0",))))
    assert Wire().read_log_record(value, 3, 4) == LogRecord(3, 4, Tick(5, ("traces/0",)))


def test_a_value_too_large_is_not_written():
    wire = Wire("avro", max_bytes=100)
    for write in (wire.write, wire.write_internal):
        with pytest.raises(TooLarge, match=r"a Notice takes .* allowed are 100"):
            write(NOTICE)
    assert wire.write(RESET)


def test_the_settings_choose(tmp_path):
    assert Wire.of(Settings()).write(RESET).startswith(b'{"project":"shop"')
    (tmp_path / "ids.json").write_text(json.dumps({"3": schemas.schema("BreakerReset")}))
    chosen = Settings(output_format="confluent", schema_ids_file=tmp_path / "ids.json")
    assert Wire.of(chosen).write(RESET)[:5] == b"\0\0\0\0\3"
