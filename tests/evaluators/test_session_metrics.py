"""Session metrics against every vector, trace by trace as well, and what they show of long sessions."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import BadRun
from streams.evaluators.session_metrics import (
    DEFAULT_WEIGHTS,
    FLAGGED,
    SHOWN,
    agent_consistency,
    agent_reliability,
    check_weights,
)
from streams.evaluators.session_signals import SessionSignals
from tests.core.vectors import cases

VECTORS = cases("session_metric_vectors")
DISTINCT = [case for case in VECTORS["cases"] if case["name"] != "duplicate_trace_ids"]
METRICS = {"agent_reliability": agent_reliability, "agent_consistency": agent_consistency}
VALUES = st.floats(0, 1)
SIGNALS = st.dictionaries(st.sampled_from([*DEFAULT_WEIGHTS, "step_efficiency"]), VALUES)
PUTS = st.lists(st.tuples(st.integers(0, 200).map(str), SIGNALS), max_size=120)
WEIGHTS = st.none() | st.dictionaries(st.sampled_from(sorted(DEFAULT_WEIGHTS)), st.floats(0, 10))


def near(value):
    if isinstance(value, dict):
        return {name: near(held) for name, held in value.items()}
    return pytest.approx(value, abs=1e-4) if isinstance(value, float) else value


def test_default_weights():
    assert VECTORS["default_signal_weights"] == DEFAULT_WEIGHTS


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_every_vector(case, metric):
    expected = case[metric]["reference"]
    found = METRICS[metric](case["traces"], case["signals"], case["signal_weights"])
    assert found.value == pytest.approx(expected["score"], abs=1e-4)
    assert {name: near(found.metadata[name]) for name in expected["metadata"]} == expected["metadata"]
    # The reference flags by reliability only.
    assert set(found.metadata) <= {*expected["metadata"], "flagged_traces"}
    assert found.reason.startswith("no trace of the session has a") == (expected["metadata"] == {})


@pytest.mark.parametrize("case", DISTINCT, ids=lambda case: case["name"])
def test_every_vector_of_distinct_traces_one_by_one(case):
    session = SessionSignals(case["signal_weights"])
    for trace_id in case["traces"]:
        session.put(trace_id, {})
        session.put(trace_id, case["signals"].get(trace_id, {}))
    assert session.agent_reliability() == agent_reliability(case["traces"], case["signals"], case["signal_weights"])
    assert session.agent_consistency() == agent_consistency(case["traces"], case["signals"], case["signal_weights"])


@given(PUTS, WEIGHTS)
def test_one_by_one_is_the_same_as_whole(puts, weights):
    session, signals = SessionSignals(weights), {}
    for trace_id, found in puts:
        session.put(trace_id, found)
        signals[trace_id] = found  # a trace that was put again keeps its place
    reliability = agent_reliability([*signals], signals, weights)
    consistency = agent_consistency([*signals], signals, weights)
    assert session.agent_reliability() == reliability
    found = session.agent_consistency()
    assert found.value == pytest.approx(consistency.value, abs=1.01e-4)  # a sum may fall on either side of a rounding
    assert {name: near(held) for name, held in found.metadata.items() if name != "aggregation"} == {
        name: near(held) for name, held in consistency.metadata.items() if name != "aggregation"
    }
    for verdict in (reliability, consistency):
        assert 0.0 <= verdict.value <= 1.0
        json.dumps(verdict.metadata, allow_nan=False)


@given(st.lists(VALUES, min_size=1, max_size=40))
def test_what_was_taken_away_leaves_nothing_behind(confidences):
    session = SessionSignals()
    for place, confidence in enumerate(confidences):
        session.put(str(place), {"confidence": confidence, "coherence": 0.3})
    for place, _ in enumerate(confidences):
        session.put(str(place), {"confidence": 1.0})
    assert session.agent_consistency().value == 1.0
    assert session.agent_consistency().metadata["aggregation"]["rms_value"] == 0.0
    for place, _ in enumerate(confidences):
        session.put(str(place), {})
    assert session.agent_reliability() == agent_reliability([*map(str, range(len(confidences)))], {})


@given(PUTS, st.sampled_from(sorted(DEFAULT_WEIGHTS)), st.data())
def test_a_worse_signal_never_makes_a_session_better(puts, name, data):
    signals = dict(puts)
    worse = dict(signals)
    for trace_id in data.draw(st.sets(st.sampled_from([*signals]))) if signals else ():
        if name in worse[trace_id]:
            worse[trace_id] = {**worse[trace_id], name: worse[trace_id][name] * data.draw(VALUES)}
    for metric in METRICS.values():
        assert metric([*worse], worse).value <= metric([*signals], signals).value + 1e-4


def test_a_long_session_shows_its_worst_traces_in_order():
    traces = [f"t{place}" for place in range(1000)]
    signals = {name: {"confidence": 1 - place / 1000} for place, name in enumerate(traces)}
    for metric in METRICS.values():
        metadata = metric(traces, signals).metadata
        assert list(metadata["per_trace_signals"]) == traces[-SHOWN:]
        assert metadata["flagged_traces"] == traces[-SHOWN:]
        assert metadata["traces_evaluated"] == 1000
    assert "499 flagged" in agent_reliability(traces, signals).reason
    assert FLAGGED == 0.5


class CountedReads(list):
    """A list that counts what is read of it."""

    read = 0

    def __getitem__(self, index):
        found = super().__getitem__(index)
        CountedReads.read += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self):
        CountedReads.read += len(self)
        return super().__iter__()


@pytest.mark.parametrize("traces", [500, 5000])
def test_a_turn_reads_the_worst_traces_only(traces):
    session = SessionSignals()
    for place in range(traces):
        session.put(str(place), {"confidence": (place * 7919 % traces) / traces, "coherence": 0.5})
    session._riskiest, session._most_doubtful = CountedReads(session._riskiest), CountedReads(session._most_doubtful)
    CountedReads.read = 0
    session.put("another", {"confidence": 0.5})
    session.agent_reliability()
    session.agent_consistency()
    assert CountedReads.read <= 0.15 * traces + 2 * SHOWN + 1


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_no_number_is_left_out(metric):
    signals = {"a": {"confidence": 0.25, "coherence": math.nan}, "b": {"confidence": math.nan}, "c": {}}
    assert METRICS[metric](["a", "b", "c"], signals).value == 0.25
    assert METRICS[metric](["b"], signals).value == 1.0


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"confidence": -0.1}, "the weight of confidence is -0.1, expected a number from 0 to 1000"),
        ({"confidence": math.nan}, "the weight of confidence is nan"),
        ({"confidence": math.inf}, "the weight of confidence is inf"),
        ({"task_completion": 1.0}, "'task_completion' is no signal; these have weights: confidence, loop_detection"),
    ],
)
def test_weights_that_a_run_cannot_have(weights, message):
    with pytest.raises(BadRun, match=message):
        check_weights(weights)


def test_weights_that_a_run_can_have():
    check_weights({})
    check_weights(dict.fromkeys(DEFAULT_WEIGHTS, 0.0))
