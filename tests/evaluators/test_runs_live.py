"""Runs and monitors end to end, from the command line to the scores, with evaluators that come, die and come back."""

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streams.broker import RunningBroker
from streams.cli import cli
from streams.core.eval_log import EvalEvent, EvalLogRecord, about
from streams.core.model import Score, ScoreTarget
from streams.core.monitors import Monitor, MonitorDue, MonitorPut, MonitorResumed
from streams.core.runs import RunCreated
from streams.settings import PREFIX
from streams.topics import EVAL_LOG
from streams.wire import Wire
from tests.pipeline.evaluating import DOUBLES, evaluators, scores, trace, trying
from tests.pipeline.harness import Pipeline, pipeline

DAY = 86_400_000


def tgate(running: Pipeline, *args: str) -> Result:
    environ = {PREFIX + name.upper(): _text(value) for name, value in running.overrides.items()}
    return CliRunner().invoke(cli, args, env=environ)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def scene(broker: RunningBroker, name: str, directory: Path, **overrides: Any) -> Iterator[Pipeline]:
    """Topics and the worker that ingests; scores come from runs alone."""
    settings = {"request_evals": False, "tick_interval_s": 0.2, **overrides}
    with pipeline(broker, name, directory, **settings) as running:
        running.start_worker()
        yield running


def ingest(running: Pipeline, *lines: dict[str, Any]) -> None:
    before = len(running.read("traces"))
    running.publish(lines)
    running.wait_until(lambda: len(running.read("traces")) == before + len(lines), "ingested traces")


def runs(running: Pipeline) -> dict[str, dict[str, Any]]:
    """Return the last record of each run."""
    return {item["run_id"]: item for item in running.values("eval-runs")}


def of_run(running: Pipeline, run_id: str) -> dict[tuple[str | None, str], dict[str, Any]]:
    """Return the scores of a run by trace and metric, each of them there once."""
    found = [item for item in running.values("eval-scores") if item["eval_run_id"] == run_id]
    by_target = {(item["trace_id"], item["name"]): item for item in found}
    assert len(by_target) == len(found)
    return by_target


def heard(running: Pipeline) -> set[tuple[str | None, str]]:
    """Return what the session log says was scored: what session metrics are made from."""
    wire, records = Wire.of(running.settings), running.read("session-log")
    bodies = [wire.read_log_record(record.value, record.offset, record.timestamp).body for record in records]
    return {(body.trace_id, body.name) for body in bodies if isinstance(body, Score)}


def watched(result: Result) -> dict[str, Any]:
    """Return the last record that a watching command printed."""
    last: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return last


def test_a_run_over_traces_from_its_creation_to_its_scores(broker: RunningBroker, tmp_path: Path) -> None:
    with scene(broker, "run-traces", tmp_path) as running:
        evaluators(running)
        spans = [{"span_id": "call", "kind": "TOOL", "name": "open", "status": "OK", "input": "1", "output": "2"}]
        lines = [trace(name, number, f"Try key {number}.", spans=spans) for name in "ab" for number in range(20)]
        ingest(running, *lines, trace("b", 1, None, status="ERROR", tags=["vip"]))
        options = ("-m", "coherence", "-m", "tool_correctness", "--threshold", "tool_correctness=1.0", "--watch")
        result = tgate(running, "runs", "create", *options, "--json")
        assert result.exit_code == 0
        seen = [json.loads(line) for line in result.stdout.splitlines()]
        assert seen[0]["status"] == "PENDING"
        assert {item["status"] for item in seen[1:-1]} <= {"PENDING", "RUNNING"}
        counts = [item["evaluated_count"] for item in seen]
        assert counts == sorted(counts)
        run = seen[-1]
        assert (run["status"], run["total_targets"], run["evaluated_count"]) == ("COMPLETED", 40, 40)
        assert run["failed_count"] == 0
        found = of_run(running, run["run_id"])
        assert Counter(metric for _, metric in found) == {"coherence": 40, "tool_correctness": 40}
        assert {json.loads(item["metadata"])["threshold"] for (_, name), item in found.items() if "tool" in name} == {
            1.0
        }
        sampled = watched(tgate(running, "runs", "create", "-m", "coherence", "--sample", "0.3", "--watch", "--json"))
        assert (sampled["total_targets"], sampled["evaluated_count"]) == (12, 12)
        empty = watched(tgate(running, "runs", "create", "-m", "coherence", "--sample", "0", "--watch", "--json"))
        assert (empty["status"], empty["total_targets"]) == ("COMPLETED", 0)
        one = watched(tgate(running, "runs", "create", "-m", "coherence", "--tag", "vip", "--watch", "--json"))
        assert [trace_id for trace_id, _ in of_run(running, one["run_id"])] == ["b-1"]


def test_a_run_over_sessions_scores_each_whole(broker: RunningBroker, tmp_path: Path) -> None:
    with scene(broker, "run-sessions", tmp_path, eval_trace_wait_s=0.5) as running:
        evaluators(running)
        ingest(running, *(trace(name, number, "Try the key.") for name in "ab" for number in range(3)))
        ingest(running, trace("c", 1, "Ask."))
        session = ("--target", "session", "--min-traces", "2", "--watch", "--json")
        looped = watched(tgate(running, "runs", "create", "-m", "loop_detection", *session))
        assert (looped["total_targets"], looped["evaluated_count"]) == (2, 2)
        every = {(f"{name}-{number}", "loop_detection") for name in "ab" for number in range(3)}
        assert of_run(running, looped["run_id"]).keys() == every
        running.wait_until(lambda: heard(running) == every, "signals in the session log")
        options = ("-m", "agent_reliability", "-m", "loop_detection", "--weight", "loop_detection=0.5")
        run = watched(tgate(running, "runs", "create", *options, *session))
        assert (run["status"], run["total_targets"], run["evaluated_count"]) == ("COMPLETED", 2, 2)
        found = [item for item in running.values("eval-scores") if item["eval_run_id"] == run["run_id"]]
        whole = {item["session_id"]: item for item in found if item["trace_id"] is None}
        assert whole.keys() == {"a", "b"}
        metadata = json.loads(whole["a"]["metadata"])
        assert (whole["a"]["name"], metadata["signal_weights"]["loop_detection"]) == ("agent_reliability", 0.5)
        assert {(item["trace_id"], item["name"]) for item in found if item["trace_id"] is not None} == every


def test_what_failed_is_asked_for_again(broker: RunningBroker, tmp_path: Path) -> None:
    """No offline judge says whether a task is done where nothing proves it: every such score fails."""
    with scene(broker, "run-retry", tmp_path) as running:
        evaluators(running)
        ingest(running, *(trace("s", number, "Ask the guard.") for number in range(3)))
        result = tgate(running, "runs", "create", "-m", "task_completion", "-m", "coherence", "--watch", "--json")
        run = watched(result)
        assert (run["status"], run["failed_count"]) == ("COMPLETED", 3)
        again = watched(tgate(running, "runs", "retry", run["run_id"], "--watch", "--json"))
        assert (again["retry_of"], again["metrics"]) == (run["run_id"], ["task_completion"])
        assert (again["status"], again["total_targets"], again["failed_count"]) == ("COMPLETED", 3, 3)
        made = of_run(running, again["run_id"])
        assert made.keys() == {(f"s-{number}", "task_completion") for number in range(3)}
        assert {item["status"] for item in made.values()} == {"FAILED"}
        nothing = tgate(running, "runs", "create", "-m", "coherence", "--watch", "--json")
        assert tgate(running, "runs", "retry", watched(nothing)["run_id"]).exit_code == 2


def test_a_limit_bounds_the_run_as_a_whole(broker: RunningBroker, tmp_path: Path) -> None:
    with scene(broker, "run-limit", tmp_path) as running:
        evaluators(running, max_evals=20)
        ingest(running, *(trace("s", number, "Ask.") for number in range(40)))
        metrics = ("-m", "tool_correctness", "-m", "coherence")
        run = watched(tgate(running, "runs", "create", *metrics, "--watch", "--json"))
        assert (run["status"], run["failed_count"]) == ("COMPLETED", 20)
        failed = [item for item in scores(running).values() if item["status"] == "FAILED"]
        assert {item["name"] for item in failed} == {"tool_correctness"}
        assert all("max_evals" in item["reason"] for item in failed)
        entries = [item for item in running.values("journal") if item["reason"] == "max_evals"]
        assert len({item["journal_id"] for item in entries}) == 1


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_a_run_goes_on_after_its_evaluator_was_killed(broker: RunningBroker, tmp_path: Path, store: str) -> None:
    """Each score of a target and metric once, and counted once."""
    with scene(broker, f"run-killed-{store}", tmp_path, store=store) as running:
        worker = trying(running)
        names = [f"slow-{number}" for number in range(3)] + ["well"]
        ingest(running, *(trace(name, number, f"Try key {number}.") for name in names for number in range(4)))
        metrics = ("-m", "step_efficiency", "-m", "coherence")
        run_id = json.loads(tgate(running, "runs", "create", *metrics, "--json").stdout)["run_id"]
        running.wait_until(lambda: runs(running)[run_id]["evaluated_count"] == 4, "the quick session's part")
        running.wait_until(lambda: len(scores(running)) == 8 + 12, "scores that do not wait")
        before = {item["score_id"] for item in scores(running).values()}
        running.stop_worker(worker, signal.SIGKILL)
        (tmp_path / "gate").touch()
        running.start_worker(DOUBLES, (str(tmp_path),), state_dir=f"{tmp_path}/1")
        running.wait_until(lambda: runs(running)[run_id]["status"] == "COMPLETED", "completed run")
        run = runs(running)[run_id]
        assert (run["total_targets"], run["evaluated_count"], run["failed_count"]) == (16, 16, 0)
        found = running.values("eval-scores")
        assert before <= {item["score_id"] for item in found}
        by_target: dict[tuple[str, str], set[str]] = {}
        for item in found:
            by_target.setdefault((item["trace_id"], item["name"]), set()).add(item["score_id"])
        assert len(by_target) == 32
        assert {len(ids) for ids in by_target.values()} == {1}


def say(running: Pipeline, *events: EvalEvent) -> None:
    """Append events to the eval log, with times that no command would choose."""
    wire = Wire.of(running.settings)
    running.publish(
        (EVAL_LOG, wire.write_internal(EvalLogRecord(-1, 0, event)), about(event).encode()) for event in events
    )


def monitor(number: int, next_run_at: int) -> MonitorPut:
    name, over = f"monitor-{number}", ("default", f"monitor-{number}", ScoreTarget.TRACE, ("coherence",))
    return MonitorPut(Monitor(name, *over, "daily", 1, next_run_at=next_run_at))


def eval_events(running: Pipeline) -> list[Any]:
    wire = Wire.of(running.settings)
    return [wire.read_eval_log_record(record.value, 0, 0).body for record in running.read(EVAL_LOG)]


def test_two_schedulers_run_each_monitor_once_and_one_goes_on_when_the_other_dies(
    broker: RunningBroker, tmp_path: Path
) -> None:
    """The one that acts is killed half-way: what is due from then on is run by the other, nothing is run twice."""
    with scene(broker, "monitors", tmp_path, candidate_partitions=1) as running:
        workers = [evaluators(running), evaluators(running)]
        ingest(running, trace("s", 1, "Ask."))

        def log(number: int) -> str:
            return (tmp_path / f"worker-{number}.log").read_text()

        running.wait_until(lambda: all("evaluators ready" in log(number) for number in (1, 2)), "second worker")
        begin = int(time.time() * 1000)
        say(running, *(monitor(number, begin + 1_000 * number) for number in range(4)))
        running.wait_until(lambda: len(runs(running)) == 4, "runs of the first monitors")
        acting = [number for number in (1, 2) if "monitor_due" in log(number)]
        assert len(acting) == 1, "one at a time owns the only partition of the eval log"
        later = int(time.time() * 1000)
        say(running, *(monitor(number, later + 2_000 * (number - 4)) for number in range(4, 10)))
        running.wait_until(lambda: len(runs(running)) >= 6, "more runs")
        running.stop_worker(workers[acting[0] - 1], signal.SIGKILL)
        running.wait_until(
            lambda: len(runs(running)) == 10 and {item["status"] for item in runs(running).values()} == {"COMPLETED"},
            "runs of all monitors",
        )
        assert "monitor_due" in log(3 - acting[0])
        assert Counter(item["monitor_id"] for item in runs(running).values()) == {
            f"monitor-{number}": 1 for number in range(10)
        }
        asked = {event.run.run_id for event in eval_events(running) if isinstance(event, RunCreated)}
        assert asked == runs(running).keys()
        shown = {item["monitor_id"]: item for item in running.values("monitors")}
        assert {item["last_run_id"] for item in shown.values()} == asked
        assert all(item["next_run_at"] > begin + DAY for item in shown.values())


def test_a_monitor_is_left_out_when_nothing_came_and_runs_when_it_is_told_to(
    broker: RunningBroker, tmp_path: Path
) -> None:
    with scene(broker, "monitor-changes", tmp_path, candidate_partitions=1) as running:
        evaluators(running)
        ingest(running, trace("s", 1, "Ask."))

        def due_again() -> None:
            """Pause and resume; then let the next time be now."""
            tgate(running, "monitors", "pause", "monitor-0")
            say(running, MonitorResumed("monitor-0", int(time.time() * 1000)))

        def dues() -> int:
            return sum(isinstance(event, MonitorDue) for event in eval_events(running))

        say(running, monitor(0, int(time.time() * 1000)))
        running.wait_until(lambda: len(runs(running)) == 1, "first run")
        running.wait_until(lambda: len(running.read("monitors")) >= 2, "rescheduled monitor")
        due_again()
        running.wait_until(lambda: "nothing_ingested" in str(running.values("journal")), "skipped run")
        assert len(runs(running)) == 1
        ingest(running, trace("other", 1, "Ask.", project="other"))
        due_again()
        running.wait_until(lambda: dues() == 3, "third time")
        ingest(running, trace("s", 1, "Ask again."))
        due_again()
        running.wait_until(lambda: len(runs(running)) == 2, "run over what was ingested late")
        tgate(running, "monitors", "pause", "monitor-0")
        triggered = tgate(running, "monitors", "trigger", "monitor-0", "--watch", "--json")
        assert watched(triggered)["status"] == "COMPLETED"
        found = json.loads(tgate(running, "monitors", "show", "monitor-0", "--json").stdout)
        assert (found["status"], found["next_run_at"]) == ("PAUSED", None)
        assert found["last_run_id"] == watched(triggered)["run_id"]
        assert len(tgate(running, "monitors", "runs", "monitor-0", "--json").stdout.splitlines()) == 3
        assert tgate(running, "monitors", "delete", "monitor-0").exit_code == 0
        running.wait_until(lambda: tgate(running, "monitors", "show", "monitor-0").exit_code == 1, "tombstone")
