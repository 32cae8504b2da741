"""Evaluators beside detection, end to end on a real broker: what the ladder asks for is scored, once, whatever happens."""

import json
import signal
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

from streams.broker import RunningBroker
from streams.engine import partition_for
from tests.pipeline.evaluating import (
    ASKING,
    START,
    ask,
    calls,
    evaluators,
    reports,
    request,
    scores,
    tool,
    trace,
    trying,
)
from tests.pipeline.harness import Pipeline, pipeline
from tests.pipeline.refold import assert_equals_refold


def test_the_ladder_live(broker: RunningBroker, tmp_path: Path) -> None:
    """Tier 1 on each trace, tier 2 on the last one once the gate has fired, session metrics; then the notices."""
    failing = [tool(number, output='"jammed"', status="ERROR", error="the lock is jammed") for number in range(3)]
    answers = ["Climb the stairs and look for the iron key.", "Climb the stairs and look for the iron key."]
    with pipeline(broker, "ladder-live", tmp_path, **ASKING, session_metrics_each_turn=True) as running:
        running.start_worker()
        evaluators(running)
        running.publish([trace("s", 1, answers[0]), trace("s", 2, answers[1], spans=failing)])
        running.wait_until(lambda: len(reports(running, "session")) == 2, "reports of the session lane")
        turns = reports(running)
        first, second = turns["s/s-1"], turns["s/s-2"]
        assert [(item["metric"], item["tier"]) for item in first["scores"]] == [("coherence", 1), ("loop_detection", 1)]
        assert first["decision"] == "quiet"
        found = {item["metric"]: item for item in second["scores"]}
        assert found.keys() == {"coherence", "loop_detection", "tool_correctness", "argument_correctness"}
        assert found["loop_detection"]["value"] == 0.0
        breaches = ["breach:argument_correctness", "breach:tool_correctness"]
        assert second["signatures"] == [*breaches, "regression:loop_detection"]
        notices = {item["lane"]: item for item in running.values("notices")}
        assert notices["trace"]["severity"] == "breach"
        assert notices["trace"]["flagged_traces"] == ["s-2"]
        assert notices["session"]["signatures"] == ["breach:agent_reliability"]
        made = scores(running)
        assert json.loads(made["s-2", "tool_correctness"]["metadata"])["judge"] == "rules"
        assert {item["status"] for item in made.values()} == {"SUCCESS"}
        assert len(made) == 2 + 4 + 2 * 2
        runs = {item["run_id"]: item for item in running.values("eval-runs")}
        assert {item["eval_run_id"] for item in made.values()} == runs.keys()
        assert {(item["status"], item["failed_count"]) for item in runs.values()} == {("COMPLETED", 0)}
        assert_equals_refold(running)
        assert [running.stop_worker(worker) for worker in running.workers] == [0, 0]


def test_a_repeat_is_not_scored_again(broker: RunningBroker, tmp_path: Path) -> None:
    """Neither while the first attempt is under way, nor once it is answered, nor after a restart."""
    first = request("slow", ["slow-1"], ["step_efficiency", "loop_detection"])
    with pipeline(broker, "repeats", tmp_path, **ASKING) as running:
        running.start_worker(request_evals=False)
        worker = trying(running)
        running.publish([trace("slow", 1, "Look for the iron key.")])
        ask(running, first, replace(first, attempt=2, metrics=("step_efficiency",)))
        running.wait_until(lambda: len(scores(running)) == 1, "the score that does not wait")
        ask(running, replace(first, attempt=3))
        (tmp_path / "gate").touch()
        running.wait_until(lambda: len(running.values("eval-runs")) == 1, "answered request")
        ask(running, replace(first, attempt=4))
        assert running.stop_worker(worker) == 0
        trying(running)
        ask(running, replace(first, attempt=5))
        ask(running, request("slow", ["slow-1"], ["loop_detection"], run_id="another run"))
        running.wait_until(lambda: len(running.values("eval-runs")) >= 2, "the next run")
        of_first = [item for item in running.values("eval-scores") if item["eval_run_id"] == first.run_id]
        assert sorted(item["name"] for item in of_first) == ["loop_detection", "step_efficiency"]
        assert sorted(calls(running)) == ["slow-1 loop_detection", "slow-1 loop_detection", "slow-1 step_efficiency"]


def test_a_repeat_after_other_settings_adds_what_they_ask_for(broker: RunningBroker, tmp_path: Path) -> None:
    first = request("s", ["s-1", "s-2"], ["coherence"])
    with pipeline(broker, "added", tmp_path, **ASKING) as running:
        running.start_worker(request_evals=False)
        evaluators(running)
        running.publish([trace("s", number, f"Try key {number}.") for number in (1, 2)])
        ask(running, first)
        running.wait_until(lambda: len(running.values("eval-runs")) == 1, "answered request")
        ask(running, replace(first, attempt=2, metrics=("loop_detection", "coherence")))
        running.wait_until(lambda: len(scores(running)) == 4, "the added scores")
        assert {item["eval_run_id"] for item in scores(running).values()} == {first.run_id}


def test_a_person_overrides_the_judge_in_session_metrics(broker: RunningBroker, tmp_path: Path) -> None:
    """For good: a later word of the judge changes nothing any more."""

    def of_signal(number: int, value: float, **more: object) -> dict[str, object]:
        fields = {"score_id": f"signal-{number}", "session_id": "s", "trace_id": "s-1", "name": "confidence"}
        return {**fields, "value": str(value), "created_at": START, **more}

    overrides = ASKING | {"tier1_metrics": "loop_detection", "session_metrics_each_turn": True}
    with pipeline(broker, "annotation", tmp_path, **overrides) as running:
        running.start_worker()
        evaluators(running)
        found = []
        said: list[list[dict[str, object]]] = [
            [trace("s", 1, "Look for the iron key."), of_signal(1, 0.2)],
            [of_signal(2, 0.9, source="ANNOTATION"), of_signal(3, 0.1), trace("s", 2, "Ask the guard for it.")],
        ]
        for number, lines in enumerate(said, 1):
            running.publish(lines)
            running.wait_until(lambda: len(reports(running, "session")) == number, "session report")  # noqa: B023
        for report in sorted(reports(running, "session").values(), key=lambda item: item["decided_at"]):
            found.append({item["metric"]: item["value"] for item in report["scores"]})
        # The first turn may have been decided before its signal was heard: then nothing spoke against it.
        assert found[0]["agent_reliability"] in {0.2, 1.0}
        assert found[1]["agent_consistency"] == 0.9
        assert found[1]["agent_reliability"] > 0.8


def test_a_request_waits_for_its_trace(broker: RunningBroker, tmp_path: Path) -> None:
    """For one that comes, in the state in which it is to be judged; and not for ever."""
    with pipeline(broker, "waits", tmp_path, **ASKING) as running:
        running.start_worker(request_evals=False)
        evaluators(running, eval_trace_wait_s=60)
        running.publish([trace("late", 1, None, status="RUNNING")])
        ask(running, request("late", ["late-1"], ["coherence", "loop_detection"]))
        running.wait_until(lambda: len(running.read("traces")) == 1, "the running trace")
        ask(running, request("there", ["there-1"], ["coherence"]))
        running.publish([trace("there", 1, "Look for the iron key.")])
        running.wait_until(lambda: len(scores(running)) == 1, "the other session's score")
        running.publish([trace("late", 1, "Look for the iron key.")])
        running.wait_until(lambda: len(scores(running)) == 3, "scores of the late trace")
        assert scores(running)["late-1", "coherence"]["value"] == scores(running)["there-1", "coherence"]["value"]


def test_a_trace_that_never_comes(broker: RunningBroker, tmp_path: Path) -> None:
    with pipeline(broker, "never", tmp_path, **ASKING) as running:
        evaluators(running, eval_trace_wait_s=0.5)
        ask(running, request("ghost", ["ghost-1"], ["coherence", "tool_correctness"]))
        running.wait_until(lambda: len(scores(running)) == 2, "failed scores")
        assert {item["status"] for item in scores(running).values()} == {"FAILED"}
        reason = scores(running)["ghost-1", "coherence"]["reason"]
        assert reason == (
            "the trace is not among those that evaluators keep, 0.5 s (eval_trace_wait_s) after it was asked for"
        )
        running.wait_until(lambda: len(running.values("eval-runs")) == 1, "answered request")
        (run,) = running.values("eval-runs")
        assert (run["status"], run["evaluated_count"], run["failed_count"]) == ("COMPLETED", 1, 2)


def test_what_is_no_trace_goes_to_the_dead_letters(broker: RunningBroker, tmp_path: Path) -> None:
    """Somebody else has written it; the traces after it are kept all the same."""
    with pipeline(broker, "rubbish", tmp_path, **ASKING) as running:
        evaluators(running)
        whole = json.dumps(trace("s", 1, "Look for the iron key.")).encode()
        running.publish([("traces", b"{rubbish", b"s"), ("traces", whole, b"s")])
        ask(running, request("s", ["s-1"], ["coherence"]))
        running.wait_until(lambda: len(scores(running)) == 1, "score")
        assert scores(running)["s-1", "coherence"]["status"] == "SUCCESS"
        (letter,) = running.read("dead-letters")
        headers = dict(letter.headers)
        assert (letter.value, letter.key, headers["dlq-error"]) == (b"{rubbish", b"s", b"SchemaMismatch")
        assert headers["dlq-topic"].decode() == running.topics["traces"].name


def test_a_limit_is_met(broker: RunningBroker, tmp_path: Path) -> None:
    """What embeddings say is not limited; of judgements each session gets so many, also over a restart."""
    metrics = ["tool_correctness", "step_efficiency", "coherence"]
    with pipeline(broker, "limit", tmp_path, **ASKING) as running:
        running.start_worker(request_evals=False)
        worker = evaluators(running, max_evals=3)
        running.publish([trace(name, number, "Look.") for name in ("a", "b") for number in (1, 2)])
        ask(running, *(request(name, [f"{name}-1"], metrics) for name in ("a", "b")))
        running.wait_until(lambda: len(running.values("eval-runs")) == 2, "answered requests")
        assert running.stop_worker(worker) == 0
        evaluators(running, max_evals=3)
        ask(running, *(request(name, [f"{name}-2"], metrics, run_id=f"second {name}") for name in ("a", "b")))
        running.wait_until(lambda: len(running.values("eval-runs")) == 4, "answered requests")
        made = scores(running)
        failed = [item for item in made.values() if item["status"] == "FAILED"]
        assert Counter(item["session_id"] for item in failed) == {"a": 1, "b": 1}
        assert failed[0]["reason"].startswith(f"max_evals: session {failed[0]['session_id']} may cost 3 judgements")
        assert made["a-2", "coherence"]["status"] == "SUCCESS"
        journal = [(item["reason"], item["session_id"]) for item in running.values("journal") if item["kind"] == "skip"]
        assert sorted(journal) == [("max_evals", "a"), ("max_evals", "b")]


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def owned(port: int) -> dict[str, set[int]] | None:
    """Ask a worker which partitions each of its stages reads; none while it is not ready."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/ready", timeout=10) as answer:
            status = json.load(answer)
    except OSError:
        return None
    found: dict[str, set[int]] = {"catalog": set(), "signals": set(), "evaluate": set()}
    for item in status["partitions"]:
        if item["stage"] in found:
            found[item["stage"]].add(item["partition"])
    return found


def test_workers_share_the_sessions(broker: RunningBroker, tmp_path: Path) -> None:
    """Each has the same partitions of traces, requests and the log, also after another one came and died."""
    sessions = [f"session-{number}" for number in range(24)]
    assert {partition_for(name.encode(), 4) for name in sessions} == {0, 1, 2, 3}
    ports = [free_port(), free_port()]
    with pipeline(broker, "shared", tmp_path, **ASKING, session_metrics_each_turn=True) as running:
        running.start_worker()
        evaluators(running, health_port=ports[0])
        second = evaluators(running, health_port=ports[1])

        def shared_out() -> bool:
            """Both are ready, and what they own is all there is, once."""
            found = [owned(port) for port in ports]
            if None in found:
                return False
            counts = Counter(number for worker in found for number in worker["evaluate"])  # type: ignore[index]
            return counts == dict.fromkeys(range(4), 1)

        running.wait_until(shared_out, "second worker")
        for port in ports:
            stages = owned(port)
            assert stages is not None
            assert stages["catalog"] == stages["signals"] == stages["evaluate"]
            assert len(stages["evaluate"]) == 2
        running.publish([trace(name, 1, "Look for the iron key.") for name in sessions])
        running.wait_until(lambda: len(reports(running, "session")) == 24, "session reports")
        running.stop_worker(second, signal.SIGKILL)
        running.publish([trace(name, 2, "Ask the guard for it.") for name in sessions])
        running.wait_until(lambda: len(reports(running, "session")) == 48, "session reports after a death")
        everything = {stage: {0, 1, 2, 3} for stage in ("catalog", "signals", "evaluate")}
        running.wait_until(lambda: owned(ports[0]) == everything, "takeover")
        found = {item["score_id"]: item for item in running.values("eval-scores")}
        assert Counter(item["name"] for item in found.values() if item["status"] == "SUCCESS") == {
            "coherence": 48,
            "loop_detection": 48,
            "agent_reliability": 48,
            "agent_consistency": 48,
        }


def test_a_worker_that_has_no_topics_does_not_start(broker: RunningBroker, tmp_path: Path) -> None:
    running = Pipeline(broker, "no-topics", tmp_path, **ASKING)
    try:
        worker = evaluators(running)
        assert worker.wait(120) == 1
        assert "missing: " in (tmp_path / "worker-0.log").read_text()
    finally:
        running.stop()
