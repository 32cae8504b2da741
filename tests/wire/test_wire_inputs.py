"""What users publish: what is taken, what is refused and with which words."""

import gzip
import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings

from streams.core.model import Score, ScoreSource, ScoreStatus, Trace, TraceStatus
from streams.errors import InvalidValue, SchemaMismatch, TooLarge
from streams.wire import Format, Wire
from tests.core.vectors import cases
from tests.wire.wire_published import scores, traces

WIRE = Wire("json")
TIME = 1_700_000_000_500
TRACE = {"trace_id": "t", "session_id": "s", "name": "turn", "status": "COMPLETED", "started_at": 1_700_000_000_000}
SCORE = {"score_id": "a", "session_id": "s", "trace_id": "t", "name": "coherence", "value": "0.25", "created_at": 5}
SPAN = {"span_id": "1", "name": "search"}
RECORDING = Path(__file__).parents[2] / "examples" / "recording" / "sessions.jsonl.gz"
FEW = settings(max_examples=50, deadline=None)


def read_trace(key=None, **changes):
    return WIRE.read_trace(orjson.dumps(TRACE | changes), key, TIME)


def read_score(key=None, **changes):
    return WIRE.read_score(orjson.dumps(SCORE | changes), key, TIME)


@FEW
@given(fields=traces)
def test_a_trace_is_the_same_in_json_and_avro(fields):
    found = WIRE.read_trace(orjson.dumps(fields), None, TIME)
    for output_format in (Format.AVRO, Format.JSON):
        assert WIRE.read_trace(WIRE.write_input("Trace", fields, output_format), None, TIME) == found
    assert found.trace.trace_id == fields["trace_id"]


@FEW
@given(fields=scores)
def test_a_score_is_the_same_in_json_and_avro(fields):
    found = WIRE.read_score(orjson.dumps(fields), None, TIME)
    for output_format in (Format.AVRO, Format.JSON):
        assert WIRE.read_score(WIRE.write_input("Score", fields, output_format), None, TIME) == found
    assert found.score.created_at == (TIME if fields.get("created_at") is None else fields["created_at"])


def test_every_recorded_event_is_taken():
    with gzip.open(RECORDING) as lines:
        for line in lines:
            read = WIRE.read_trace if b'"spans"' in line else WIRE.read_score
            assert read(line, None, TIME).session_id


def test_what_detection_keeps_of_a_trace():
    found = read_trace(
        project="shop", ended_at=1_700_000_001_000, input="x" * 2000, turn_index=3, ends_turn=False, spans=[SPAN], new=1
    )
    kept = Trace(
        "t", "shop", TraceStatus.COMPLETED, 1_700_000_000_000, 1_700_000_001_000, 3, ends_turn=False, input="x" * 1024
    )
    assert (found.session_id, found.trace) == ("s", kept)
    assert found.whole["input"] == "x" * 2000
    assert "new" not in found.whole
    assert read_trace().trace == Trace("t", "default", TraceStatus.COMPLETED, 1_700_000_000_000)


@pytest.mark.parametrize(
    ("tags", "task"),
    [([], None), (["a", "b"], "a"), ([""], None), (["x\n" + "y" * 300], "x " + "y" * 254)],
)
def test_the_first_tag_names_the_task(tags, task):
    assert read_trace(tags=tags).trace.task == task


def test_what_detection_keeps_of_a_score():
    metadata = {"threshold": 0.7, "flagged_traces": ["t-1", "", 5, "x" * 257, "t-2"]}
    found = read_score(reason="a\x1b[31m" + "é" * 200, metadata=metadata, eval_run_id="run", source="ANNOTATION")
    reason = "a [31m" + "é" * 125
    assert found.score == Score(
        "a", "t", "coherence", 0.25, ScoreStatus.SUCCESS, ScoreSource.ANNOTATION, 5, reason, 0.7, ("t-1", "t-2"), "run"
    )


@pytest.mark.parametrize("metadata", [{"threshold": bad} for bad in (True, "0.5", -0.1, 1.1, None, [], {})])
def test_a_threshold_that_is_none_counts_as_absent(metadata):
    assert read_score(metadata=metadata).score.threshold is None


def test_flagged_traces_are_at_most_64():
    metadata = {"flagged_traces": [str(number) for number in range(100)], "threshold": 1}
    found = read_score(metadata=json.dumps(metadata)).score
    assert (len(found.flagged_traces), found.threshold) == (64, 1.0)
    assert read_score(metadata={"flagged_traces": "t"}).score.flagged_traces == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("0", 0), ("1", 1), ("1.0", 1), (".5", 0.5), ("1.", 1), ("+0.5", 0.5), ("5e-1", 0.5), ("-0", 0), ("1E0", 1)],
        *[("0.5_0", 0.5), ("\u0660.\u0665", 0.5)],
    ],
)
def test_decimals_in_the_unit_interval(text, value):
    assert str(read_score(value=text).score.value) == str(float(value))


@pytest.mark.parametrize("case", cases("cadence_score_vectors")["score_value"], ids=repr)
def test_score_values_against_every_vector(case):
    fields = {"value": case["value"], "data_type": case["data_type"]}
    if case["accepted"]:
        assert read_score(**fields).score.resolved
    else:
        with pytest.raises(InvalidValue):
            read_score(**fields)


@pytest.mark.parametrize("number", [0, 1, 0.25, True, 1e-9])
def test_a_json_number_or_boolean_is_taken(number):
    data_type = "BOOLEAN" if number is True else "NUMERIC"
    assert read_score(value=number, data_type=data_type).score.value == float(number)


@pytest.mark.parametrize(
    "value",
    [
        *["nan", "NaN", "inf", "-inf", "Infinity", "1.01", "-0.1", "1_0", "0x1", "half", "0,5"],
        *("", " 0.5", "0.5 ", "0." + "1" * 300, None, True, False, [], {}, 2),
    ],
)
def test_what_is_no_decimal_in_the_unit_interval(value):
    with pytest.raises(InvalidValue, match=r"^value is .*, expected a decimal in \[0, 1\]"):
        read_score(value=value)


@pytest.mark.parametrize(("text", "value"), [("true", 1.0), ("TRUE", 1.0), ("False", 0.0), ("fALSE", 0.0)])
def test_booleans_in_any_case(text, value):
    assert read_score(value=text, data_type="BOOLEAN").score.value == value


@pytest.mark.parametrize("value", ["yes", "1", "0", "", None, 1])
def test_what_is_no_boolean(value):
    with pytest.raises(InvalidValue, match=r"^value is .*, expected true or false"):
        read_score(value=value, data_type="BOOLEAN")


@pytest.mark.parametrize("value", ["good", None, 7, ["a"]])
def test_a_category_is_carried_without_value(value):
    found = read_score(value=value, data_type="CATEGORICAL").score
    assert (found.value, found.resolved) == (None, True)


@pytest.mark.parametrize("status", ["FAILED", "PENDING"])
@pytest.mark.parametrize("value", ["0.5", "nan", None, "words", {}])
def test_a_value_beside_failed_or_pending_is_ignored(status, value):
    found = read_score(value=value, status=status).score
    assert (found.value, found.resolved) == (None, status == "FAILED")


@pytest.mark.parametrize("read", [read_trace, read_score])
def test_the_session_may_be_named_by_the_key(read):
    assert read(b"other", session_id=None).session_id == "other"
    assert read(b"other").session_id == "s"
    assert read_trace(b"other", session_id=None).whole["session_id"] == "other"
    for key in (None, b""):
        with pytest.raises(InvalidValue, match="session_id is missing, expected an id, here or as the record's key"):
            read(key, session_id=None)
    for key in (b"\xff", b"x" * 257):
        with pytest.raises(InvalidValue):
            read(key, session_id=None)


@pytest.mark.parametrize(
    ("read", "field"),
    [
        *((read_trace, field) for field in ("trace_id", "session_id", "project")),
        *((read_score, field) for field in ("trace_id", "session_id", "name")),
    ],
)
@pytest.mark.parametrize("value", ["", "x" * 257, "é" * 129, "a\nb", "\x1b[2J", "\u202eab"])
def test_ids_are_1_to_256_bytes_without_control_characters(read, field, value):
    assert read(**{field: "é" * 128})
    expected = "expected 1 to 256 bytes of UTF-8, without control characters$"
    with pytest.raises(InvalidValue, match=rf"^{field} is '.*, {expected}"):
        read(**{field: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trace_id": None}, "trace_id is missing, expected text"),
        ({"trace_id": 5}, "trace_id is 5, expected text"),
        ({"status": "DONE"}, "status is 'DONE', expected PENDING, RUNNING, COMPLETED, ERROR"),
        ({"status": None}, "status is missing, expected PENDING, RUNNING, COMPLETED, ERROR"),
        ({"started_at": None}, "started_at is missing, expected a whole number of at most 64 bits"),
        ({"started_at": -1}, "started_at is -1, expected milliseconds since 1970, UTC"),
        ({"started_at": 10**18}, "started_at is 10.*, expected milliseconds since 1970, UTC"),
        ({"started_at": 1.5}, "started_at is 1.5, expected a whole number"),
        ({"started_at": True}, "started_at is True, expected a whole number"),
        ({"started_at": "yesterday"}, "started_at is 'yesterday', expected .* or ISO 8601"),
        ({"started_at": "0001-01-01T00:00:00+23:00"}, "started_at is -6.*, expected milliseconds"),
        ({"ends_turn": "yes"}, "ends_turn is 'yes', expected true or false"),
        ({"turn_index": 2**31}, "turn_index is 2147483648, expected a whole number of at most 32 bits"),
        ({"tags": "a"}, "tags is 'a', expected a list"),
        ({"tags": ["a", 1]}, r"tags\[1\] is 1, expected text"),
        ({"metadata": "[]"}, r"metadata is '\[\]', expected JSON text of one object"),
        ({"metadata": "{"}, "metadata is '{', expected JSON text of one object"),
        ({"metadata": []}, r"metadata is '\[\]', expected JSON text of one object"),
        ({"spans": [SPAN, {"name": "2"}]}, r"spans\[1\].span_id is missing, expected text"),
        ({"name": "x" * 257}, "name is .* expected at most 256 bytes"),
        ({"spans": [SPAN | {"span_id": ""}]}, r"spans\[0\].span_id is '', expected 1 to 256 bytes"),
        ({"spans": [SPAN | {"kind": "tool"}]}, r"spans\[0\].kind is 'tool', expected AGENT, TOOL"),
        ({"spans": [SPAN | {"cost": -1}]}, r"spans\[0\].cost is -1.0, expected a number that is not negative"),
        ({"spans": [SPAN | {"token_usage": {"input": -1}}]}, r"spans\[0\].token_usage.input is -1, expected"),
        ({"spans": {}}, r"spans is {}, expected a list"),
        ({"user_id": "x" * 257}, "user_id is .* expected at most 256 bytes"),
    ],
)
def test_a_trace_with_a_value_that_is_not_allowed(changes, message):
    with pytest.raises(InvalidValue, match="^" + message):
        read_trace(**changes)


def test_a_long_value_is_shown_short():
    with pytest.raises(InvalidValue) as found:
        read_trace(status="x" * 100_000)
    assert len(str(found.value)) < 200


@pytest.mark.parametrize(
    "text",
    ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20.000", "2023-11-14T23:13:20+01:00", "2023-11-14 22:13:20", 1.7e12],
)
def test_times_may_be_iso_8601_in_json(text):
    assert read_trace(started_at=text).trace.started_at == 1_700_000_000_000
    assert read_score(created_at=text).score.created_at == 1_700_000_000_000


def test_a_score_without_time_takes_the_records():
    assert read_score(created_at=None).score.created_at == TIME
    assert WIRE.read_score(orjson.dumps(SCORE | {"created_at": None}), None, -1).score.created_at == 0


def test_json_may_hold_values_as_themselves():
    found = read_trace(input={"task": "x"}, output=[1, None], metadata={"a": {"b": 1}}, tags=None, project=None).whole
    assert (found["input"], found["output"], found["metadata"]) == ('{"task":"x"}', "[1,null]", '{"a":{"b":1}}')
    assert (found["tags"], found["project"]) == ([], "default")
    assert read_trace(input='"hello"').whole["input"] == '"hello"'


def test_defaults_are_not_shared():
    read_trace().whole["tags"].append("mine")
    assert read_trace().whole["tags"] == []


def test_what_is_published_is_checked_first():
    with pytest.raises(InvalidValue, match="value is '2'"):
        WIRE.write_input("Score", SCORE | {"value": "2"})
    with pytest.raises(InvalidValue, match="status is missing"):
        WIRE.write_input("Trace", {"trace_id": "t", "started_at": 1})
    with pytest.raises(TooLarge):
        Wire("json", max_bytes=1000).write_input("Trace", TRACE | {"input": "x" * 1000})
    assert json.loads(WIRE.write_input("Score", {"score_id": "a", "name": "m", "value": 1}))["session_id"] is None


@pytest.mark.parametrize(("name", "fields"), [("Trace", TRACE), ("Score", SCORE)])
def test_avro_with_bytes_left_over_or_missing_is_refused(name, fields):
    value = WIRE.write_input(name, fields, "avro")
    read = WIRE.read_trace if name == "Trace" else WIRE.read_score
    assert read(value, None, TIME)
    for bad in (value + b"\0", value[:-1], value[:10]):
        with pytest.raises(SchemaMismatch):
            read(bad, None, TIME)
