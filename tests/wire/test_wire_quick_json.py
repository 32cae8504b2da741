"""The fast path reads what the slow one reads, or leaves it to the slow one."""

import gzip
from itertools import islice
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.errors import InvalidValue
from streams.wire import schemas
from streams.wire.checks import checker
from streams.wire.json_datums import datum_reader
from streams.wire.quick_json import quick_reader
from tests.wire.wire_published import json_values, scores, traces

MANY = settings(max_examples=200, deadline=None)
RECORDING = Path(__file__).parents[2] / "examples" / "recording" / "sessions.jsonl.gz"
PUBLISHED = {"Trace": traces, "Score": scores}
NAMES = {name: [field["name"] for field in schemas.schema(name)["fields"]] for name in (*PUBLISHED, "Span")}


def slow(name, value):
    """Return what the slow path makes of a value, or nothing where it refuses it."""
    try:
        datum = datum_reader(name)(value)
        checker(name)(datum)
    except InvalidValue:
        return None
    return datum


@MANY
@given(data=st.data(), name=st.sampled_from(sorted(PUBLISHED)))
def test_what_is_valid_is_read_alike_or_left(data, name):
    value = orjson.loads(orjson.dumps(data.draw(PUBLISHED[name])))
    quick = quick_reader(name)(value)
    assert quick is None or quick == slow(name, value)


@MANY
@given(data=st.data(), name=st.sampled_from(sorted(PUBLISHED)))
def test_what_is_damaged_is_read_alike_or_left(data, name):
    value = orjson.loads(orjson.dumps(data.draw(PUBLISHED[name])))
    place = value
    if value.get("spans") and data.draw(st.booleans()):
        place, name_of_place = value["spans"][0], "Span"
    else:
        name_of_place = name
    place[data.draw(st.sampled_from(NAMES[name_of_place]))] = data.draw(json_values)
    quick = quick_reader(name)(value)
    assert quick is None or quick == slow(name, value)


@pytest.mark.parametrize("value", [None, 5, "text", [], {}, [{}]])
def test_what_is_no_record_is_left(value):
    assert quick_reader("Trace")(value) is None


def test_recorded_sessions_take_the_fast_path():
    with gzip.open(RECORDING, "rt") as lines:
        for line in islice(lines, 500):
            value = orjson.loads(line)
            name = "Score" if "score_id" in value else "Trace"
            quick = quick_reader(name)(value)
            assert quick is not None
            assert quick == slow(name, value)
