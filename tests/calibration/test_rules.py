"""Rules beside the gate, in arrays, say what the core's detectors say step by step."""

import random

import pytest

from streams.calibration.rules import Rule, sweep_rules
from streams.calibration.tracks import tracks
from streams.core.detectors import Absolute, Detector, Percentile, Relative, Trend
from streams.core.rules import Rules

RULES = Rules()


def detector(rule: Rule) -> Detector:
    settings = dict(rule.settings)
    match rule.name:
        case "trend":
            return Trend(RULES.ewma_fast_span, RULES.ewma_slow_span, settings["trend_margin_cross"])
        case "relative":
            return Relative(RULES.ewma_slow_span, settings["adaptive_margin_drop"])
        case "breach":
            return Absolute(settings["threshold"])
        case _:
            return Percentile(int(settings["percentile_window"]), settings["percentile_floor"])


@pytest.mark.parametrize("seed", range(3))
def test_every_rule_equals_its_detector(seed: int) -> None:
    chance = random.Random(seed)
    series = [[round(chance.random(), 3) for _ in range(chance.choice((1, 3, 12, 40)))] for _ in range(25)]
    found = tracks(("m",), [(str(at), [[value] for value in values], None) for at, values in enumerate(series)])
    tried, result = sweep_rules(found, RULES)
    assert {rule.name for rule in tried} == {"trend", "relative", "breach", "percentile", "deadline"}
    for number, rule in enumerate(tried):
        for session, values in enumerate(series):
            expected = by_step(rule, values)
            assert (result.notices[number, session], result.first[number, session]) == expected, (rule, values)


def by_step(rule: Rule, values: list[float]) -> tuple[int, int]:
    if rule.name == "deadline":
        age = int(dict(rule.settings)["traces"])
        return (1, age) if len(values) >= age else (0, 0)
    used = detector(rule)
    state, before, notices, first = used.start(), False, 0, 0
    for step, value in enumerate(values, 1):
        state, fired = used.step(state, value)
        if fired and not before:
            notices, first = notices + 1, first or step
        before = fired
    return notices, first
