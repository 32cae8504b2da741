"""Coherence and loop detection against every vector, and what no vector says."""

import json
import math
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.evaluators.evaluation import Subject, with_threshold
from streams.evaluators.signals import (
    Earlier,
    LoopWindow,
    clamp01,
    coherence,
    coherence_texts,
    content,
    dist,
    loop_detection,
    loop_window,
    overlap,
    text,
    window_of,
    words,
)
from tests.core.vectors import cases

VECTORS = cases("signal_vectors")
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
NAMED = {"ids": lambda case: case.get("name") if isinstance(case, dict) else None}


def near(value, rel=0.0):
    """Metadata as they are, numbers in them to within 1e-4."""
    if isinstance(value, dict):
        return {name: near(held) for name, held in value.items()}
    if isinstance(value, list):
        return [near(held) for held in value]
    return pytest.approx(value, abs=1e-4, rel=rel) if isinstance(value, float) else value


@pytest.mark.parametrize("case", VECTORS["cosine_distance"])
def test_distance(case):
    if "raises" in case:
        with pytest.raises(ValueError, match="vectors of 2 and of 3 numbers"):
            dist(case["a"], case["b"])
    else:
        assert dist(case["a"], case["b"]) == pytest.approx(case["distance"], abs=1e-12)


@pytest.mark.parametrize("case", VECTORS["tokenize"])
def test_words(case):
    assert sorted(words(case["text"])) == case["tokens"]


@pytest.mark.parametrize("case", VECTORS["jaccard"])
def test_overlap(case):
    assert overlap(case["a"], case["b"]) == pytest.approx(case["jaccard"], abs=1e-12)


@pytest.mark.parametrize("case", VECTORS["to_text"])
def test_text(case):
    assert text(case["value"]) == case["text"]
    assert content(json.dumps(case["value"])) == case["text"]
    assert (text(case["value"]) == "") is case["counts_as_empty"]


@pytest.mark.parametrize("case", VECTORS["coherence"], **NAMED)
def test_coherence(case):
    trace = {"input": json.dumps(case["input"]), "output": json.dumps(case["output"])}
    texts = coherence_texts(trace)
    assert bool(texts) == bool(case["embed_calls"])
    vectors = [case["embedding_input"], case["embedding_output"]] if texts else []
    agrees(coherence(vectors), case)


@pytest.mark.parametrize("case", VECTORS["loop_detection"], **NAMED)
def test_loop_detection(case):
    window = window_of(
        text(case["output"]), [(f"t{place}", text(held)) for place, held in enumerate(case["previous_outputs"])]
    )
    assert [list(window.texts)] == (case["embed_calls"] or [[]])
    verdict = loop_detection(window, [case["embeddings"][held] for held in window.texts])
    for compared, known in zip(verdict.metadata.get("comparisons", ()), window.earlier, strict=True):
        assert compared.pop("trace_id") == known.trace_id
    agrees(verdict, case)


def agrees(verdict, case):
    threshold = 0.5 if case["threshold"] is None else case["threshold"]
    found = with_threshold(verdict, threshold)
    assert found.value == pytest.approx(case["reference"]["score"], abs=1e-4)
    expected = case["reference"]["metadata"]
    assert {name: found.metadata[name] for name in expected} == near(expected)
    assert set(found.metadata) <= {*expected, "threshold", "success"}


def whole(said, output="null"):
    return {"trace_id": said, "input": json.dumps(said), "output": output}


def test_a_trace_is_compared_with_its_history():
    history = [whole("1", '"first answer"'), whole("2", None), whole("3", '{"said": "third"}')]
    window = loop_window(Subject(whole("4", '"fourth answer"'), history))
    assert window == LoopWindow(
        "fourth answer", (Earlier(1, "1", "first answer"), Earlier(2, "3", '{"said": "third"}'))
    )


def test_only_the_last_three_count_even_where_they_are_blank():
    assert window_of("same", [("1", "same"), *[("2", "")] * 3]) == LoopWindow(
        "same", note="the earlier outputs are empty"
    )


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (None, ""),
        ("no JSON", "no JSON"),
        ("null", ""),
        ('""', ""),
        ("[" * 100_000, "[" * 100_000),
        (r'"half \ud83d a face"', "half ? a face"),
        ('{ "b":1,"a":"\u00e9" }', r'{"b": 1, "a": "\u00e9"}'),
    ],
)
def test_content_is_json_text_or_stands_as_it_is(held, said):
    assert content(held) == said


@given(st.lists(NUMBERS, min_size=2, max_size=2), st.lists(NUMBERS, min_size=2, max_size=2))
def test_whatever_an_embedder_says_a_value_is_in_range_or_there_is_none(one, other):
    window = LoopWindow("same words", (Earlier(0, "1", "same words"),))
    for verdict in (coherence([one, other]), loop_detection(window, [one, other])):
        assert verdict.value is None or 0.0 <= verdict.value <= 1.0
        if not all(map(math.isfinite, [*one, *other])):
            assert verdict.value is None
            assert verdict.reason.startswith("the embedder answered")


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.text(max_size=30), st.text(max_size=30))
def test_a_repeat_is_a_loop_and_symmetric(vector, one, other):
    assert dist(vector, vector) == (pytest.approx(0.0, abs=1e-9) if any(abs(x) > 1e-300 for x in vector) else ANY)
    assert overlap(one, other) == overlap(other, one)
    assert overlap(one, one) == (1.0 if words(one) else 0.0)


@given(NUMBERS)
def test_clamping(value):
    assert math.isnan(clamp01(value)) if math.isnan(value) else 0.0 <= clamp01(value) <= 1.0
