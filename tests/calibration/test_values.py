"""Statistics of a metric against the cases with exact answers."""

from typing import Any

import pytest

from streams.calibration.values import MetricValues, agreement, describe
from tests.core.vectors import cases

CASES = cases("calibration")


def by_metric(case: dict[str, Any]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for session, scores in case["scores"].items():
        for metric, value in scores.items():
            found.setdefault(metric, {})[session] = value
    return found


def flat(found: MetricValues) -> dict[str, Any]:
    """Return the statistics as the cases have them."""
    names = ("metric", "threshold", "count", "minimum", "maximum", "mean", "median", "stdev")
    shown: dict[str, Any] = {name: getattr(found, name) for name in names}
    shown["histogram"] = list(found.histogram)
    shown["sweep"] = [
        {"threshold": at.threshold, "breach_count": at.breach_count, **confusion(at.confusion)} for at in found.sweep
    ]
    labeled = found.labeled
    shown["labeled"] = labeled and {
        "labeled_sessions": labeled.sessions,
        **confusion(labeled.configured),
        "best_f1_threshold": labeled.best_f1_threshold,
        "best_f1": labeled.best_f1,
        "target_precision": labeled.target_precision,
        "target_precision_threshold": labeled.target_precision_threshold,
    }
    return shown


def confusion(found: Any) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(("precision", "recall", "f1")) | dict.fromkeys(("tp", "fp", "tn", "fn"), 0)
    return {name: getattr(found, name) for name in ("precision", "recall", "f1", "tp", "fp", "tn", "fn")}


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_every_metric(case: dict[str, Any]) -> None:
    values = by_metric(case)
    expected = {item["metric"]: item for item in case["expect"]["metrics"]}
    assert sorted(values) == list(expected)
    for metric, held in values.items():
        want = expected[metric]
        target = (want["labeled"] or {}).get("target_precision", 0.8)
        found = flat(describe(metric, held, case["thresholds"].get(metric, 0.5), case["labels"], target))
        assert found == want
    assert len(case["scores"]) == case["expect"]["session_count"]
    assert agreement(case["scores"], case["thresholds"]) == case["expect"]["agreement"]


def test_no_session_with_two_metrics_has_no_agreement() -> None:
    assert agreement({"s": {"m": 0.5}}, {}) is None
