"""The registry of metrics, what runs may ask for, and the bounds of a verdict."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.model import ScoreTarget
from streams.errors import BadRun
from streams.evaluators.evaluation import MAX_REASON, Usage, failed, scored, with_threshold
from streams.evaluators.metrics import METRICS, MetricKind, check_metrics, runnable
from streams.evaluators.session_metrics import DEFAULT_WEIGHTS


def test_eleven_metrics_of_which_four_are_signals():
    assert len(METRICS) == 11
    assert {name for name, metric in METRICS.items() if metric.signal} == set(DEFAULT_WEIGHTS)
    assert all(metric.threshold == 0.5 for metric in METRICS.values())
    arithmetic = {name for name, metric in METRICS.items() if metric.kind is MetricKind.ARITHMETIC}
    assert arithmetic == {name for name, metric in METRICS.items() if metric.target is ScoreTarget.SESSION}


def test_every_metric_is_runnable_over_one_target():
    assert sorted([*runnable(ScoreTarget.TRACE), *runnable(ScoreTarget.SESSION)]) == sorted(METRICS)
    assert runnable(ScoreTarget.SESSION) == ("loop_detection", "agent_reliability", "agent_consistency")


def test_what_a_run_asks_for_is_asked_once():
    assert check_metrics(["coherence", "confidence", "coherence"], ScoreTarget.TRACE) == ("coherence", "confidence")


@pytest.mark.parametrize(
    ("names", "target", "message"),
    [
        ([], ScoreTarget.SESSION, "at least one metric; over a SESSION these are possible: loop_detection, agent_"),
        (["accuracy"], ScoreTarget.TRACE, "there is no metric 'accuracy'; over a TRACE these are possible: task_"),
        (["loop_detection"], ScoreTarget.TRACE, "loop_detection needs a run over a SESSION; over a TRACE"),
        (["coherence"], ScoreTarget.SESSION, "coherence needs a run over a TRACE"),
    ],
)
def test_what_no_run_can_ask_for(names, target, message):
    with pytest.raises(BadRun, match=message):
        check_metrics(names, target)


@given(st.floats(), st.text())
def test_a_verdict_is_in_range_or_has_no_value(value, reason):
    verdict = scored(value, reason)
    if 0.0 <= value <= 1.0:
        assert verdict.value == round(value, 4)
        assert math.copysign(1, verdict.value) == 1
    else:
        assert verdict.value is None
        assert str(value) in verdict.reason
    assert verdict.reason.isprintable()
    assert len(verdict.reason.encode()) <= MAX_REASON


def test_a_pass_line_is_reached_by_the_value_that_is_published():
    assert with_threshold(scored(0.49996), 0.5).metadata == {"threshold": 0.5, "success": True}
    assert with_threshold(scored(0.4, metadata={"judge": "rules"}), 0.5).metadata == {
        "judge": "rules",
        "threshold": 0.5,
        "success": False,
    }
    assert with_threshold(failed("no answer"), 0.5) == failed("no answer")


def test_usage_adds_up():
    assert Usage(1, 2, 1, 0.5) + Usage(3, 4, 1, 0.25) == Usage(4, 6, 2, 0.75)
