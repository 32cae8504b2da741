"""Evaluators that are killed, and judges that hang: each metric of each trace is scored once, and nobody else waits."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streams.broker import RunningBroker
from tests.pipeline.evaluating import (
    ASKING,
    DOUBLES,
    ask,
    calls,
    evaluators,
    remembered,
    reports,
    request,
    requests,
    scores,
    trace,
    trying,
)
from tests.pipeline.harness import pipeline
from tests.pipeline.refold import assert_equals_refold


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_killed_in_the_middle_of_a_request(broker: RunningBroker, tmp_path: Path, store: str) -> None:
    """What was acknowledged and remembered stands; the rest is done after the restart; each score has one id."""
    names = [f"slow-{number}" for number in range(1, 6)]
    wanted = request("slow", names, ["loop_detection", "step_efficiency"])
    with pipeline(broker, f"killed-{store}", tmp_path, **ASKING, store=store) as running:
        running.start_worker(request_evals=False)
        running.publish([trace("slow", number, f"Try key {number}.") for number in range(1, 6)])
        worker = trying(running)
        ask(running, wanted)
        running.wait_until(lambda: remembered(running) == 5, "scores that do not wait")
        running.stop_worker(worker, signal.SIGKILL)
        before = scores(running)
        (tmp_path / "gate").touch()
        running.start_worker(DOUBLES, (str(tmp_path),), state_dir=f"{tmp_path}/1")
        running.wait_until(lambda: len(running.values("eval-runs")) == 1, "answered request")
        found = running.values("eval-scores")
        assert {(item["trace_id"], item["name"]) for item in found} == {
            (name, metric) for name in names for metric in ("loop_detection", "step_efficiency")
        }
        assert len({item["score_id"] for item in found}) == 10
        assert {item["score_id"] for item in before.values()} <= {item["score_id"] for item in found}
        (run,) = running.values("eval-runs")
        assert (run["evaluated_count"], run["failed_count"], run["status"]) == (5, 0, "COMPLETED")
        # What was remembered is not paid for again.
        assert Counter(line.split()[1] for line in calls(running))["loop_detection"] == 5


def test_killed_again_and_again(broker: RunningBroker, tmp_path: Path) -> None:
    """Wherever a kill falls: every score of every run is there, under one id and with one value."""
    sessions = [f"session-{number}" for number in range(30)]
    overrides = ASKING | {"session_metrics_each_turn": True, "eval_deadline_s": 3600}
    with pipeline(broker, "killed-often", tmp_path, **overrides) as running:
        running.start_worker()
        for number in range(3):
            worker = running.start_worker(arguments=("evaluators",), state_dir=f"{tmp_path}/evaluators")
            running.publish([trace(name, number, f"Try key {number}.") for name in sessions])
            running.wait_until(
                lambda: len(running.read("eval-scores")) > 60 * number,  # noqa: B023
                "some scores of the next round",
            )
            running.stop_worker(worker, signal.SIGKILL)
        evaluators(running)
        running.wait_until(lambda: len(reports(running, "session")) == 90, "all session reports")
        asked = {item.run_id: item for item in requests(running)}
        running.wait_until(lambda: len({item["run_id"] for item in running.values("eval-runs")}) == len(asked), "runs")
        found: dict[str, set[tuple[Any, ...]]] = {}
        for item in running.values("eval-scores"):
            key = item["eval_run_id"], item["trace_id"], item["name"], item["value"]
            found.setdefault(item["score_id"], set()).add(key)
        of_traces = {key for keys in found.values() for key in keys if key[1] is not None}
        assert len(of_traces) == sum(len(item.trace_ids) * len(item.metrics) for item in asked.values() if item.tier)
        assert len(found) == sum(max(1, len(item.trace_ids)) * len(item.metrics) for item in asked.values())
        assert {len(keys) for keys in found.values() if next(iter(keys))[1] is not None} == {1}
        assert_equals_refold(running)


def test_a_judge_that_hangs_holds_up_nobody_else(broker: RunningBroker, tmp_path: Path) -> None:
    """Its turn is decided at its deadline, as pending; more hanging sessions than slots leave the others their turns."""
    overrides = ASKING | {"tier1_metrics": "step_efficiency,coherence", "tier3_metrics": "plan_quality"}
    overrides |= {"eval_retry_attempts": 2, "eval_deadline_s": 2}
    hanging = [f"hangs-{number}" for number in range(4)]
    with pipeline(broker, "hanging", tmp_path, **overrides) as running:
        running.start_worker()
        trying(running, eval_concurrency=6)
        running.publish([trace(name, 1, "It does not open.") for name in hanging])
        running.wait_until(lambda: len(calls(running)) >= 8, "hanging judgements")
        running.publish([trace("well", number, f"Try key {number}.") for number in (1, 2)])
        running.wait_until(lambda: len(reports(running)) == 6, "decided turns")
        turns = reports(running)
        assert {turns[f"{name}/{name}-1"]["decision"] for name in hanging} == {"pending"}
        for number in (1, 2):
            values = [item["value"] for item in turns[f"well/well-{number}"]["scores"]]
            assert None not in values
        assert {item["session_id"] for item in running.values("eval-scores")} == {"well"}
        asked = [item for item in requests(running) if item.session_id in hanging]
        assert Counter((item.session_id, item.attempt) for item in asked) == Counter(
            (name, attempt) for name in hanging for attempt in (1, 2)
        )


def test_an_evaluation_that_takes_too_long_fails(broker: RunningBroker, tmp_path: Path) -> None:
    with pipeline(broker, "too-long", tmp_path, **ASKING) as running:
        running.start_worker(request_evals=False)
        trying(running, eval_timeout_s=0.5)
        running.publish([trace("hangs", 1, "It does not open.")])
        ask(running, request("hangs", ["hangs-1"], ["coherence"]))
        running.wait_until(lambda: len(scores(running)) == 1, "failed score")
        made = scores(running)["hangs-1", "coherence"]
        assert (made["status"], made["value"]) == ("FAILED", None)
        assert made["reason"] == "no answer within 0.5 s (eval_timeout_s)"
