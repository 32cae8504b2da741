"""A trace that is published again, whole."""

import json

from streams.core.whole_traces import merged
from streams.wire import Wire


def whole(**fields):
    """Return a whole trace as its reader makes it."""
    trace = {"trace_id": "t", "session_id": "s", "status": "RUNNING", "started_at": 1, **fields}
    return Wire().read_trace(json.dumps(trace).encode(), None, 0).whole


def test_a_first_record_stands_as_it_is():
    update = whole(name="first", tags=["a"])
    assert merged(None, update) == update


def test_status_name_and_start_are_overwritten_other_scalars_only_by_what_is_said():
    known = whole(name="old", input="question", user_id="u", turn_index=3, ended_at=5)
    update = whole(name="", status="COMPLETED", started_at=2, output="answer", user_id="v")
    found = merged(known, update)
    assert (found["name"], found["status"], found["started_at"]) == ("", "COMPLETED", 2)
    assert (found["input"], found["output"]) == ("question", "answer")
    assert (found["user_id"], found["turn_index"], found["ended_at"]) == ("v", 3, 5)


def test_metadata_are_merged_by_their_outermost_keys_and_tags_united():
    known = whole(metadata={"a": {"x": 1}, "b": 2}, tags=["one", "two"])
    update = whole(metadata={"a": {"y": 3}, "ü": "é"}, tags=["two", "three"])
    found = merged(known, update)
    assert json.loads(found["metadata"]) == {"a": {"y": 3}, "b": 2, "ü": "é"}
    assert found["tags"] == ["one", "two", "three"]
    assert merged(known, whole())["metadata"] == known["metadata"]
    assert merged(whole(), known)["metadata"] == known["metadata"]


def test_metadata_too_deep_for_python_do_not_stop_anything():
    deep = '{"a":' * 1020 + "1" + "}" * 1020
    known = {**whole(), "metadata": deep}
    assert merged(known, whole(metadata={"b": 1}))["metadata"] == '{"b":1}'


def test_spans_are_merged_by_their_id():
    first = {"span_id": "a", "name": "search", "kind": "TOOL", "input": "q", "metadata": {"x": 1}, "started_at": 1}
    known = whole(spans=[first, {"span_id": "b", "name": "other"}])
    again = {"span_id": "a", "status": "ERROR", "error": "gone", "metadata": {"y": 2}, "ended_at": 4}
    found = merged(known, whole(spans=[{"span_id": "c"}, again]))
    assert [span["span_id"] for span in found["spans"]] == ["a", "b", "c"]
    span = found["spans"][0]
    assert (span["name"], span["kind"], span["status"]) == ("search", "TOOL", "ERROR")
    assert (span["input"], span["error"], span["started_at"], span["ended_at"]) == ("q", "gone", 1, 4)
    assert json.loads(span["metadata"]) == {"x": 1, "y": 2}


def test_nothing_that_went_in_is_changed():
    known, update = (
        whole(spans=[{"span_id": "a"}], tags=["x"]),
        whole(spans=[{"span_id": "a", "name": "n"}], tags=["y"]),
    )
    before = json.dumps([known, update])
    merged(known, update)
    assert json.dumps([known, update]) == before
