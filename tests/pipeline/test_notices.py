"""The main job, end to end on a real broker: what is published becomes exactly the notices it should."""

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from streams.broker import RunningBroker
from tests.pipeline.harness import pipeline
from tests.pipeline.refold import assert_equals_refold

ROOT = Path(__file__).parents[2]
START = 1_767_603_600_000


def trace(session: str, number: int, **more: object) -> dict[str, object]:
    at = START + number * 60_000
    return {
        "session_id": session,
        "trace_id": f"{session}-{number}",
        "name": "step",
        "status": "COMPLETED",
        "started_at": at,
        **more,
    }


def score(session: str, number: int, metric: str, value: float, **more: object) -> dict[str, object]:
    return {
        "score_id": f"{session}-{number}-{metric}",
        "session_id": session,
        "trace_id": f"{session}-{number}",
        "name": metric,
        "value": str(value),
        "created_at": START + number * 60_000 + 1,
        **more,
    }


def story(session: str, *values: float) -> list[dict[str, object]]:
    """A session of one trace a turn, each with one tier-1 score."""
    lines = []
    for number, value in enumerate(values, 1):
        lines += [trace(session, number), score(session, number, "task_completion", value)]
    return lines


def test_hand_written_file(broker: RunningBroker, tmp_path: Path) -> None:
    """One session climbs, one stalls, one falls back: exactly two notices, with the reasons in words."""
    lines = [json.loads(line) for line in (ROOT / "examples" / "three_sessions.jsonl").read_text().splitlines()]
    with pipeline(broker, "hand-written", tmp_path) as running:
        running.start_worker()
        running.publish(lines)
        running.wait_settled(16)
        notices = {item["session_id"]: item for item in running.values("notices")}
        assert {name: (item["severity"], item["signatures"]) for name, item in notices.items()} == {
            "stalls": ("trend", ["stall:task_completion"]),
            "falls-back": ("trend", ["regression:task_completion"]),
        }
        assert notices["stalls"]["summary"] == (
            "task_completion 0.21 on trace stalls-6: stalled, 5 traces without a gain of 0.02 "
            "over the peak 0.2 (target 0.5)"
        )
        assert notices["falls-back"]["summary"] == (
            "task_completion 0.4 on trace falls-back-4: fell back from the peak 0.62"
        )
        assert assert_equals_refold(running)["notices"] == 2


def test_breach_where_tier_2_confirms(broker: RunningBroker, tmp_path: Path) -> None:
    lines = story("falls", 0.6)
    lines += [trace("falls", 2), score("falls", 2, "tool_correctness", 0.3), score("falls", 2, "task_completion", 0.2)]
    with pipeline(broker, "breach", tmp_path, tier1_metrics="task_completion") as running:
        running.start_worker()
        running.publish(lines)
        running.wait_settled(2)
        (notice,) = running.values("notices")
        assert notice["severity"] == "breach"
        assert notice["signatures"] == ["breach:tool_correctness", "regression:task_completion"]
        assert_equals_refold(running)


def test_scores_alone(broker: RunningBroker, tmp_path: Path) -> None:
    """Nobody announces a trace: the scores stand for them."""
    lines = [score("alone", number, "task_completion", 0.2) for number in range(1, 7)]
    overrides = {"tier1_metrics": "task_completion", "unannounced_wait_s": 0}
    with pipeline(broker, "scores-alone", tmp_path, **overrides) as running:
        running.start_worker()
        running.publish(lines)
        running.wait_settled(6)
        assert [item["signatures"] for item in running.values("notices")] == [["stall:task_completion"]]
        assert_equals_refold(running)


def test_bad_input_goes_to_dead_letters_and_stops_nothing(broker: RunningBroker, tmp_path: Path) -> None:
    bad = [("eval-scores", b"garbage", b"s"), ("trace-ingested", b'{"trace_id": 7}', None)]
    with pipeline(broker, "bad-input", tmp_path, tier1_metrics="task_completion") as running:
        running.start_worker()
        running.publish([*bad, *story("good", 0.6, 0.2)])
        running.wait_settled(2)
        letters = {record.value: dict(record.headers) for record in running.read("dead-letters")}
        assert letters.keys() == {b"garbage", b'{"trace_id": 7}'}
        assert letters[b"garbage"]["dlq-error"] == b"UnknownFormat"
        assert letters[b"garbage"]["dlq-topic"].endswith(b"eval-scores")
        assert len(running.values("notices")) == 1


def test_a_trace_too_large_goes_to_dead_letters_and_stops_nothing(broker: RunningBroker, tmp_path: Path) -> None:
    large = trace("large", 1, output=json.dumps("x" * 20_000))
    told = {"tier1_metrics": "task_completion", "max_record_bytes": 10_000}
    with pipeline(broker, "too-large", tmp_path, **told) as running:
        running.start_worker()
        running.publish([large, *story("good", 0.6, 0.2)])
        running.wait_settled(2)
        (letter,) = running.read("dead-letters")
        assert letter.value == json.dumps(large).encode()
        assert dict(letter.headers)["dlq-error"] == b"TooLarge"
        assert {item["session_id"] for item in running.values("turn-settled")} == {"good"}


def test_second_worker_takes_its_share(broker: RunningBroker, tmp_path: Path) -> None:
    """A worker that joins in the middle changes nothing in what comes out."""
    stories = [story(f"session-{number}", 0.3, 0.6, 0.2, 0.2) for number in range(40)]
    with pipeline(broker, "second-worker", tmp_path, circuit_breaker_max_notices=0) as running:
        running.start_worker()
        running.publish([line for lines in stories[:20] for line in lines])
        running.wait_settled(10)
        second = running.start_worker(state_dir=str(tmp_path / "second"))
        running.publish([line for lines in stories[20:] for line in lines])
        running.wait_settled(160)
        assert second.poll() is None
        assert {item["session_id"] for item in running.values("notices")} == {f"session-{n}" for n in range(40)}
        counts = assert_equals_refold(running)
        assert counts["turn-reports"] == 160


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_recorded_sessions_over_a_restart(broker: RunningBroker, tmp_path: Path, store: str) -> None:
    """Real agents' sessions, the worker stopped and started in the middle: all of it equals the pure core's answer."""
    with gzip.open(ROOT / "examples" / "recording" / "sessions.jsonl.gz", "rt") as recording:
        lines = [json.loads(line) for line in islice(recording, 1200)]
    traces = sum("score_id" not in line for line in lines)
    overrides = {
        "tier1_metrics": "task_completion",
        "tier2_metrics": "tool_correctness",
        "circuit_breaker_max_notices": 3,
        "store": store,
    }
    with pipeline(broker, f"recorded-{store}", tmp_path, **overrides) as running:
        first = running.start_worker()
        running.publish(lines[:600])
        running.wait_settled(50)
        assert running.stop_worker(first) == 0
        running.publish(lines[600:])
        running.start_worker()
        running.wait_settled(traces)
        counts = assert_equals_refold(running)
        assert counts["turn-reports"] == traces
        assert counts["notices"] > 0
        assert counts["needs-human"] > 0


def test_faust_command_line_runs_the_same_worker(broker: RunningBroker, tmp_path: Path) -> None:
    with pipeline(broker, "by-faust", tmp_path, tier1_metrics="task_completion") as running:
        worker = running.start_worker(module="faust", arguments=("-A", "streams", "worker", "--without-web"))
        running.publish(story("good", 0.6, 0.2))
        running.wait_settled(2)
        assert len(running.values("notices")) == 1
        assert running.stop_worker(worker) == 0
