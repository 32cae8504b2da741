"""A trace as a judge reads it: all of it where it fits, and where not, cut in a way that shows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.evaluators.trace_text import trace_text
from tests.evaluators.judging import trace

LIMIT = 5_000


def test_a_trace_is_read_whole_with_its_texts_decoded_and_its_steps_in_order():
    late, early = ({**trace()["spans"][0], "span_id": name, "started_at": at} for name, at in (("b", 9), ("a", 2)))
    shown = trace_text(trace(spans=[late, early], metadata='{"goal": "dry feet"}'), LIMIT)
    held = json.loads(shown.text)
    assert not shown.cut
    assert (held["input"], held["output"]) == ("What is the weather in Oslo?", "It rains.")
    assert held["metadata"] == {"goal": "dry feet"}
    assert [span["span_id"] for span in held["spans"]] == ["a", "b"]
    assert held["spans"][0]["input"] == {"q": "weather in Oslo"}
    assert "user_id" not in held
    assert "error" not in held["spans"][0]


def test_a_long_field_keeps_its_ends_and_says_how_much_is_missing():
    shown = trace_text(trace(output=json.dumps("begin" + "x" * 20_000 + "end")), LIMIT)
    output = json.loads(shown.text)["output"]
    assert shown.cut
    assert output.startswith("beginx")
    assert output.endswith("xend")
    assert "[... 16008 characters left out ...]" in output


def test_of_many_steps_the_first_and_last_are_kept():
    spans = [{**trace()["spans"][0], "span_id": f"s{number}", "started_at": number} for number in range(500)]
    kept = json.loads(trace_text(trace(spans=spans), LIMIT).text)["spans"]
    place = next(place for place, span in enumerate(kept) if isinstance(span, str))
    assert kept[place] == f"[... {500 - len(kept) + 1} spans left out ...]"
    assert [span["span_id"] for span in kept[:place]] == [f"s{number}" for number in range(place)]
    last = len(kept) - place - 1
    assert [span["span_id"] for span in kept[place + 1 :]] == [f"s{number}" for number in range(500 - last, 500)]
    assert last > 5


TEXT = st.text(st.sampled_from('<>"\\/ax\n\ud800é'), max_size=40).map(lambda text: text * 300)
ANYTHING = st.recursive(TEXT | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=5), max_leaves=8)


@given(
    output=ANYTHING.map(json.dumps),
    tags=st.lists(TEXT, max_size=6),
    errors=st.lists(TEXT, max_size=9),
    limit=st.integers(2_000, 20_000),
)
def test_whatever_it_holds_it_is_json_within_the_limit_that_closes_no_mark(output, tags, errors, limit):
    spans = [{**trace()["spans"][0], "error": error, "output": output} for error in errors]
    shown = trace_text(trace(output=output, tags=tags, spans=spans), limit)
    json.loads(shown.text)
    assert len(shown.text) <= limit
    assert shown.cut == (shown.characters > limit)
    assert "<" not in shown.text
    shown.text.encode()


@pytest.mark.parametrize("held", ["{no json", '"\\ud800"', "[" * 100_000])
def test_what_is_no_json_is_shown_as_it_is(held):
    assert json.loads(trace_text(trace(output=held), LIMIT).text)["output"]
