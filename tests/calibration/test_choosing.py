"""Choosing within a budget, refusing, and the bounds behind both."""

import math
import random

import numpy as np
import pytest

from streams.calibration.abstentions import Reason, abstentions, one_sided, shape, too_few
from streams.calibration.bounds import interval, upper_count, upper_rate
from streams.calibration.choosing import Chosen, Verdict, choose
from streams.calibration.evidence import evidence
from streams.calibration.grid import gates
from streams.calibration.sweep import sweep
from streams.calibration.tracks import Tracks, tracks
from streams.core.gate import Gate


@pytest.mark.parametrize(
    ("count", "bound"), [(0, 2.995732), (1, 4.743865), (5, 10.513035), (20, 29.062), (500, 538.4), (2000, 2075.2)]
)
def test_upper_bounds_of_counts(count: int, bound: float) -> None:
    """Exact values of Garwood's one-sided 95 % bound; the approximation beyond 500 agrees to a tenth."""
    assert upper_count(count) == pytest.approx(bound, rel=2e-4)


def test_alarms_that_come_together_tell_less() -> None:
    apart, together = np.array([1] * 6 + [0] * 94), np.array([6] + [0] * 99)
    assert upper_rate(apart, 1000) == pytest.approx(upper_count(6) / 1000)
    assert upper_rate(together, 1000) == pytest.approx(6 * upper_count(1) / 1000)
    assert upper_rate(np.array([0]), 0) == math.inf


def test_an_interval_holds_the_mean_and_leaves_out_nan() -> None:
    values = np.arange(100.0)
    low, high = interval(lambda at: float(values[at].mean()), 100)
    assert 40 < low < 49.5 < high < 60
    assert all(math.isnan(bound) for bound in interval(lambda _: math.nan, 10))


def story(good: int, failed: int, seed: int = 1, noise: float = 0.0) -> tuple[Tracks, dict[str, bool]]:
    """Good sessions climb to 1 in ten traces; failed ones stand at 0.3; with *noise* good ones stand still at times."""
    chance = random.Random(seed)
    sessions = []
    for number in range(good):
        values = [[min(1.0, 0.1 * step)] for step in range(1, 11)]
        if chance.random() < noise:
            values = [[0.2]] * 12 + values
        sessions.append((f"good-{number}", values, None))
    sessions += [(f"failed-{number}", [[0.3]] * 20, None) for number in range(failed)]
    return tracks(("m",), sessions), {name: name.startswith("failed") for name, _, _ in sessions}


def chosen(found: Tracks, labels: dict[str, bool] | None, budget: float) -> tuple[Chosen, list[Gate]]:
    tried = gates(Gate(), int(found.lengths.max()), found.traces)
    return choose(evidence(found, sweep(found, tried), labels), found.names, budget, 0.95, 5), tried


def test_what_separates_is_chosen_with_the_longest_lead() -> None:
    found, tried = chosen(*story(400, 40), 1 / 500)
    assert found.verdict is Verdict.CHOSEN
    assert found.setting is not None
    assert tried[found.setting].window == 2
    assert found.bound == pytest.approx(upper_count(0) / 4000)
    assert found.held_out is not None
    assert (found.held_out.false_alarms, found.held_out.found) == (0, 40)


def test_too_few_good_traces_are_refused_with_what_they_support() -> None:
    found, _ = chosen(*story(20, 20), 1 / 500)
    assert found.verdict is Verdict.TOO_FEW
    assert found.supported == pytest.approx(upper_count(0) / 200)
    assert found.setting is not None


def test_few_labels_on_a_side_are_refused() -> None:
    assert chosen(*story(400, 4), 1 / 500)[0].verdict is Verdict.ONE_SIDED


def test_no_setting_within_the_budget_is_refused() -> None:
    """Failed sessions look like good ones."""
    found = tracks(("m",), [(f"s{number}", [[0.3]] * 20, None) for number in range(400)])
    labels = {f"s{number}": number % 2 == 0 for number in range(400)}
    assert chosen(found, labels, 1 / 500)[0].verdict is Verdict.OVER_BUDGET


def test_sessions_without_a_label_do_not_count() -> None:
    found, labels = story(10, 10)
    part = {name: failed for name, failed in labels.items() if name != "good-0"}
    held = evidence(found, sweep(found, [Gate()]), part)
    assert (held.good_traces, int(held.failed.sum()), int(held.tp[0])) == (90, 10, 10)


def reasons(values: list[list[float]], gate: Gate | None = None) -> dict[Reason, str]:
    used = gate or Gate()
    found = shape([np.array(session) for session in values], used)
    return {item.reason: item.text for item in abstentions("m", found, used)}


CLIMB = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.3, 0.7]


@pytest.mark.parametrize(
    ("values", "gate", "reason", "number"),
    [
        ([[0.5, 0.5], [0.5]], None, Reason.CONSTANT, "0.5"),
        ([[0.0] * 19 + [1.0], [0.2] * 20, CLIMB], None, Reason.DEADLINE_ONLY, "67%"),
        ([[0.5, 0.2, 0.5, 0.2, 0.5, 0.2, 0.6]], None, Reason.NOISE, "47%"),
        ([[0.1 * step for step in range(8)]] * 5, None, Reason.INACTIVE, "gate_drop 0.15"),
        ([[0.1, 0.2, 0.1, 0.3, 0.1, 0.2, 0.3]] * 5, None, Reason.OUT_OF_REACH, "highest value is 0.3"),
        ([CLIMB] * 5, Gate(window=20), Reason.TOO_SHORT, "gate_window 20"),
        ([[0.1] * 6 + [0.7, 0.5]] * 5, Gate(gain=0), Reason.FLAT_GAIN, "71%"),
    ],
)
def test_where_a_rule_cannot_work(values: list[list[float]], gate: Gate | None, reason: Reason, number: str) -> None:
    found = reasons(values, gate)
    assert number in found[reason]


def test_a_healthy_series_has_no_warning() -> None:
    assert reasons([CLIMB] * 5) == {}


def test_labels_on_one_side() -> None:
    assert one_sided(dict.fromkeys("abcdefghij", False)) is not None
    assert one_sided({name: name < "f" for name in "abcdefghij"}) is None


def test_too_few_sessions_to_learn_a_pace_line_from() -> None:
    found = too_few(19, 10)
    assert found is not None
    assert (found.rule, found.reason) == ("pace", Reason.TOO_FEW)
    assert found.text.startswith("19 sessions to learn from: a line needs 10")
    assert too_few(20, 10) is None
