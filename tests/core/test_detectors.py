"""One suite that every detector of the one shape must pass, and what makes each one itself."""

from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.detectors import Absolute, DetectorState, Percentile, Relative, Trend, quantile, session_detectors
from streams.core.gate import Gate, GateState
from streams.core.model import Condition
from streams.core.pace import Pace, Point
from streams.core.rules import Rules

PACE = Pace("m", points=(Point(1, 0.2), Point(4, 0.5)), until=30, patience=5)
DETECTORS = [
    Gate(),
    Gate(window=1, gain=0.0),
    PACE,
    Absolute(0.5),
    Trend(),
    Relative(),
    Percentile(),
    Percentile(window=1),
]
values = st.floats(0, 1)
series = st.lists(values, max_size=40)
every_detector = pytest.mark.parametrize("detector", DETECTORS, ids=repr)


def run(detector, given_values, state=None):
    """Return every (state, fired) of a series."""
    state = detector.start() if state is None else state
    found = []
    for value in given_values:
        state, fired = detector.step(state, value)
        found.append((state, fired))
    return found


@every_detector
def test_is_a_frozen_dataclass_of_settings(detector):
    assert is_dataclass(detector)
    with pytest.raises(FrozenInstanceError):
        setattr(detector, fields(detector)[0].name, 1)


@every_detector
def test_start_has_seen_nothing_and_is_always_the_same(detector):
    assert detector.start().seen == 0
    assert detector.start() == detector.start()


@every_detector
@given(given_values=series)
def test_the_same_input_gives_the_same_output(detector, given_values):
    assert run(detector, given_values) == run(detector, given_values)


@every_detector
@given(given_values=series)
def test_seen_counts_the_values(detector, given_values):
    assert [state.seen for state, _ in run(detector, given_values)] == list(range(1, len(given_values) + 1))


@every_detector
@given(given_values=series, value=values)
def test_a_step_leaves_the_state_it_was_given_alone(detector, given_values, value):
    state = ([(detector.start(), None), *run(detector, given_values)])[-1][0]
    copy = type(state)(*state)
    hash(state)  # immutable all the way down
    detector.step(state, value)
    assert state == copy


@every_detector
@given(given_values=series, cut=st.integers(0, 40))
def test_carrying_on_from_a_state_is_the_same_as_one_go(detector, given_values, cut):
    first = run(detector, given_values[:cut])
    state = first[-1][0] if first else detector.start()
    assert first + run(detector, given_values[cut:], state) == run(detector, given_values)


@every_detector
@given(given_values=st.lists(values, min_size=1, max_size=60))
def test_the_state_stays_small(detector, given_values):
    state, _ = run(detector, given_values)[-1]
    limit = detector.window if isinstance(detector, Percentile) else 2
    assert len(getattr(state, "values", ())) <= limit


@pytest.mark.parametrize("detector", [item for item in DETECTORS if not isinstance(item, Absolute)], ids=repr)
@given(value=values, count=st.integers(1, 4))
def test_a_constant_series_below_the_window_is_no_finding(detector, value, count):
    if not (isinstance(detector, Gate) and detector.window == 1):
        assert not any(fired for _, fired in run(detector, [value] * count))


@given(st.data())
def test_a_climbing_series_never_fires(data):
    gate = Gate(
        window=data.draw(st.integers(0, 5)),
        target=data.draw(values),
        gain=data.draw(st.sampled_from([0.0, 0.01, 0.02, 0.1])),
        drop=data.draw(values),
    )
    state = gate.start()
    value = data.draw(values)
    for _ in range(30):
        state, fired = gate.step(state, value)
        assert (state.peak, state.traces_since_gain, fired) == (value, 0, ())
        if value + gate.gain > 1:
            break
        value = data.draw(st.floats(value + gate.gain, 1))


@given(series, st.integers(0, 5), st.sampled_from([0.0, 0.02, 0.3]))
def test_the_peak_never_falls(given_values, window, gain):
    peaks = [state.peak for state, _ in run(Gate(window=window, gain=gain), given_values)]
    assert peaks == sorted(peaks)


def test_a_first_value_of_zero_is_a_peak():
    gate = Gate(window=2)
    assert run(gate, [0.0, 0.0, 0.0]) == [
        (GateState(0.0, 0, 1), ()),
        (GateState(0.0, 1, 2), ()),
        (GateState(0.0, 0, 3), (Condition.STALL,)),
    ]


def test_a_fall_in_a_stalled_series_is_both_and_the_peak_stays():
    gate = Gate(window=2)
    assert run(gate, [0.4, 0.4, 0.1])[-1] == (GateState(0.4, 0, 3), (Condition.STALL, Condition.REGRESSION))


def test_a_window_below_one_counts_as_one():
    assert run(Gate(window=0), [0.2, 0.2])[-1] == (GateState(0.2, 0, 2), (Condition.STALL,))


def test_a_peak_at_the_target_never_stalls():
    assert [fired for _, fired in run(Gate(window=1), [0.5, 0.5, 0.5])] == [(), (), ()]


def test_a_value_at_its_threshold_is_no_breach():
    assert [fired for _, fired in run(Absolute(0.5), [0.5, 0.4999999, 0.0])] == [False, True, True]


def test_averages_start_at_the_first_value_even_when_it_is_zero():
    assert run(Trend(), [0.0, 1.0])[-1] == (DetectorState(2, (0.5, 2 / 11)), False)
    assert run(Relative(), [0.0, 1.0])[-1] == (DetectorState(2, (2 / 11,)), False)


def test_trend_needs_its_samples():
    found = run(Trend(min_samples=4), [0.9, 0.1, 0.1, 0.1])
    assert [fired for _, fired in found] == [False, False, False, True]


def test_relative_needs_its_samples():
    found = run(Relative(min_samples=3), [0.9, 0.1, 0.1])
    assert [fired for _, fired in found] == [False, False, True]


def test_percentile_needs_two_values_however_few_samples_are_asked():
    assert [fired for _, fired in run(Percentile(window=5, min_samples=0), [0.5, 0.4])] == [False, True]


def test_percentile_needs_no_more_values_than_its_window_holds():
    assert [fired for _, fired in run(Percentile(window=2, min_samples=9), [0.5, 0.4])] == [False, True]


def test_percentile_keeps_the_last_values_only():
    assert run(Percentile(window=2), [0.1, 0.9, 0.8])[-1][0] == DetectorState(3, (0.9, 0.8))


@pytest.mark.parametrize(("q", "answer"), [(0.0, 0.1), (0.25, 0.175), (0.5, 0.25), (0.75, 0.325), (1.0, 0.4)])
def test_quantiles_interpolate(q, answer):
    assert quantile((0.4, 0.1, 0.3, 0.2), q) == pytest.approx(answer, abs=1e-15)


@pytest.mark.parametrize(
    ("rules", "chosen"),
    [
        ({}, [Condition.BREACH, Condition.TREND]),
        ({"enable_trend": False}, [Condition.BREACH]),
        ({"adaptive_threshold": True}, [Condition.BREACH, Condition.RELATIVE, Condition.TREND]),
        ({"percentile_window": 9}, [Condition.BREACH, Condition.TREND, Condition.PERCENTILE]),
    ],
)
def test_rules_switch_detectors_on(rules, chosen):
    assert [condition for condition, _, watched in session_detectors(Rules(**rules), 0.5) if watched] == chosen
