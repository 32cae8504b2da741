"""Whatever the bytes, reading gives a record or says in one of our own errors what is wrong."""

import contextlib

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams.core.log import LogRecord, Source
from streams.errors import InvalidRecord, NewerState
from streams.wire import Wire
from streams.wire.encoder import varint
from tests.wire.wire_published import json_values, scores, traces
from tests.wire.wire_records import RECORDS, records

WIRE = Wire()
MANY = settings(max_examples=200, deadline=None)


def take_trace(value):
    """Read a trace, as well when it comes again under the key that ingest gives it, and write what ingest makes of it."""
    found = WIRE.read_trace(value, b"k", 5)
    assert WIRE.read_trace(value, found.session_id.encode(), 9) == found
    log(found.session_id, found.trace)


def take_score(value):
    found = WIRE.read_score(value, b"k", 5)
    log(found.session_id, found.score)


def log(session_id, body):
    record = LogRecord(5, 5, body, session_id, Source("in", "", 0, 1))
    assert WIRE.read_log_record(WIRE.write_internal(record), 5, 5) == record


def read_all(value):
    for read in (
        lambda: take_trace(value),
        lambda: take_score(value),
        lambda: WIRE.read_log_record(value, 5, 5),
        lambda: WIRE.read_candidate(value),
        *((lambda made=made: WIRE.read(made, value)) for made in RECORDS if made is not LogRecord),
    ):
        with contextlib.suppress(InvalidRecord, NewerState):
            read()


def damaged(value, data):
    """Return *value* with some bytes changed, cut out, doubled or put in."""
    found = bytearray(value)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(found) - 1)))
        match data.draw(st.integers(0, 4)):
            case 0:
                found[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
            case 1:
                del found[at : at + data.draw(st.integers(1, 20))]
            case 2:
                found[at:at] = found[at : at + data.draw(st.integers(1, 20))]
            case 3:
                found[at:at] = data.draw(st.binary(min_size=1, max_size=10))
            case _:
                del found[at:]
    return bytes(found)


@MANY
@given(value=st.none() | st.binary(max_size=60))
@example(b"{" * 100_000)
@example(b'{"a":' * 5_000 + b"1" + b"}" * 5_000)
@example(b'{"trace_id":"\\ud800"}')
@example(b'{"score_id":"a","name":"m","value":1e999}')
@example(b'{"score_id":"a","name":"m","value":' + b"9" * 5_000 + b"}")
def test_any_bytes(value):
    read_all(value)


@MANY
@given(body=st.binary(max_size=60), data=st.data())
def test_any_body_after_a_header_of_ours(body, data):
    name, fields = data.draw(st.sampled_from([("Trace", TRACE), ("Score", SCORE)]))
    read_all(WIRE.write_input(name, fields, "avro")[:10] + body)


@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("made", RECORDS)
@given(data=st.data())
def test_damaged_records(made, data):
    read_all(damaged(WIRE.write_internal(data.draw(records(made))), data))


@MANY
@given(fields=traces, data=st.data(), output_format=st.sampled_from(["avro", "json"]))
def test_damaged_traces(fields, data, output_format):
    read_all(damaged(WIRE.write_input("Trace", fields, output_format), data))


@MANY
@given(fields=scores, data=st.data(), output_format=st.sampled_from(["avro", "json"]))
def test_damaged_scores(fields, data, output_format):
    read_all(damaged(WIRE.write_input("Score", fields, output_format), data))


@MANY
@given(fields=traces | scores, data=st.data())
def test_json_with_any_value_anywhere(fields, data):
    target = data.draw(st.sampled_from([fields, *fields.get("spans", [])]))
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(json_values)
    read_all(orjson.dumps(fields))


TRACE = {"trace_id": "t", "name": "n", "status": "COMPLETED", "started_at": 1}
SCORE = {"score_id": "a", "name": "m", "value": "1"}


@pytest.mark.parametrize(
    "count", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
)
def test_counts_and_lengths_beyond_the_bytes(count):
    for name, fields in (("Trace", TRACE), ("Score", SCORE)):
        value = WIRE.write_input(name, fields, "avro")
        for at in range(10, len(value)):
            read_all(value[:at] + count + value[at:])
            read_all(value[:at] + count + b"\0" * 20)


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_an_int_of_more_than_32_bits(number):
    value = WIRE.write_input("Trace", TRACE | {"turn_index": 5}, "avro")
    assert value.endswith(b"\x02\x0a\x01")
    read_all(value[:-2] + varint(number) + b"\x01")
