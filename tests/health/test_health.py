"""A real worker, watched from outside: what it answers, what it counts, and how it ends when it stands still."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streams.broker import RunningBroker
from streams.worker import EXIT_CRASHED
from tests.health import hanging
from tests.health.infra import unknown
from tests.health.probe import by_label, get, get_json, log_lines, series, url_of
from tests.pipeline.harness import PATIENCE_S, Pipeline, pipeline
from tests.pipeline.test_notices import score, story

ROOT = Path(__file__).parents[2]
WATCHED: dict[str, Any] = {"health_port": 0, "log_format": "json", "stall_warn_s": 1.5}
PARTITIONS = {"ingest": 6, "session": 4, "breaker": 2}


def _url(running: Pipeline, number: int = 0) -> str:
    log = running.directory / f"worker-{number}.log"
    running.wait_until(lambda: url_of(log) is not None, "health address")
    return url_of(log) or ""


def _wait_ready(running: Pipeline, url: str) -> None:
    running.wait_until(lambda: get(f"{url}/ready")[0] == 200, "readiness")


def test_every_counter_equals_what_was_published(broker: RunningBroker, tmp_path: Path) -> None:
    """Two notices in a row trip the breaker; two bad records; a late score: all of it counted exactly."""
    lines = [json.loads(line) for line in (ROOT / "examples" / "three_sessions.jsonl").read_text().splitlines()]
    bad = [("eval-scores", b"garbage", b"s"), ("trace-ingested", b'{"trace_id": 7}', None)]
    with pipeline(broker, "health-counters", tmp_path, circuit_breaker_max_notices=1, **WATCHED) as running:
        running.start_worker()
        url = _url(running)
        _wait_ready(running, url)
        running.publish([*lines, *bad])
        running.wait_settled(16)
        running.publish([score("falls-back", 1, "task_completion", 0.5)])
        running.wait_until(lambda: len(running.values("journal")) == 1, "late score")
        running.wait_until(lambda: _all_dealt_with(url, len(lines) + 3), "end of all lags")
        assert get_json(f"{url}/live") == (200, {"live": True, "loop_blocked_s": 0.0})
        assert unknown(series(f"{url}/metrics")) == []
        _assert_counts(running, url, traces=sum("score_id" not in line for line in lines) + 1)


def _all_dealt_with(url: str, inputs: int) -> bool:
    _, ready = get_json(f"{url}/ready")
    found = series(f"{url}/metrics")
    read = by_label(found, "tgate_records_read_total", "stage")
    return read.get("ingest") == inputs and not any(item["lag"] for item in ready["partitions"])


def _assert_counts(running: Pipeline, url: str, traces: int) -> None:
    found = series(f"{url}/metrics")
    reports, journal = running.values("turn-reports"), running.values("journal")
    settled, notices = running.values("turn-settled"), running.values("notices")
    topics = {role: topic.name for role, topic in running.topics.items()}
    read = by_label(found, "tgate_records_read_total", "topic")
    assert read[topics["trace-ingested"]] == traces
    assert read[topics["notice-candidates"]] == len(running.read("notice-candidates")) == 2
    assert by_label(found, "tgate_decisions_total", "decision") == Counter(item["decision"] for item in reports)
    assert by_label(found, "tgate_notices_total", "severity") == Counter(item["severity"] for item in notices)
    assert by_label(found, "tgate_settlements_total", "outcome") == Counter(item["outcome"] for item in settled)
    assert by_label(found, "tgate_journal_entries_total", "kind") == Counter(item["kind"] for item in journal)
    assert by_label(found, "tgate_dead_letters_total", "error") == {"UnknownFormat": 1, "InvalidValue": 1}
    assert found["tgate_needs_human_total", ()] == len(running.values("needs-human")) == 1
    assert found["tgate_late_scores_total", ()] == 1
    assert len(notices) == 1
    assert len(settled) == 16
    assert by_label(found, "tgate_partitions_owned", "stage") == PARTITIONS
    assert by_label(found, "tgate_partitions_assigned", "stage") == PARTITIONS
    assert len([1 for name, _ in found if name == "tgate_lag_records"]) == sum(PARTITIONS.values())
    assert len([1 for name, _ in found if name == "tgate_recovery_records"]) == 4 + 2
    for stage in PARTITIONS:
        batches = found["tgate_batch_seconds_count", (("stage", stage),)]
        assert batches > 0
        assert found["tgate_latency_seconds_count", (("stage", stage),)] == batches
        assert (
            found["tgate_batch_records_sum", (("stage", stage),)]
            == by_label(found, "tgate_records_read_total", "stage")[stage]
        )


@pytest.mark.parametrize("how", ["awaits", "blocks"])
def test_a_stage_that_hangs_ends_the_process(
    broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Said once, shown while it lasts, then a non-zero exit; the next worker does all of the work."""
    monkeypatch.setenv(hanging.HOW, how)
    limits = {**WATCHED, "stall_exit_s": 8, "tier1_metrics": "task_completion"}
    with pipeline(broker, f"health-{how}", tmp_path, **limits) as running:
        worker = running.start_worker("tests.health.hanging")
        url = _url(running)
        _wait_ready(running, url)
        running.publish(story("hangs", 0.6, 0.2))
        running.wait_until(lambda: get(f"{url}/{'ready' if how == 'awaits' else 'live'}")[0] == 503, "stall")
        if how == "awaits":
            assert get(f"{url}/live")[0] == 200
            _assert_shown(url)
        assert worker.wait(PATIENCE_S) == EXIT_CRASHED
        said = Counter(line["event"] for line in log_lines(running.directory / "worker-0.log"))
        assert said["loop_blocked" if how == "blocks" else "stalled"] == 1
        assert said["ending"] == 1
        running.start_worker()
        running.wait_settled(2)
        assert len({item["notice_id"] for item in running.values("notices")}) == 1


def test_a_recovery_that_hangs_ends_the_process(
    broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(hanging.HOW, "restores")
    with pipeline(broker, "health-restores", tmp_path, **{**WATCHED, "stall_exit_s": 8}) as running:
        worker = running.start_worker("tests.health.hanging")
        url = _url(running)
        running.wait_until(lambda: len(get_json(f"{url}/ready")[1]["stalled"]) == 4 + 2, "stall")
        assert by_label(series(f"{url}/metrics"), "tgate_partition_stalled", "stage") == {"session": 4, "breaker": 2}
        assert worker.wait(PATIENCE_S) == EXIT_CRASHED
        said = Counter(line["event"] for line in log_lines(running.directory / "worker-0.log"))
        assert (said["recovery_stalled"], said["ending"]) == (4 + 2, 1)
        running.start_worker()
        running.publish(story("hangs", 0.6, 0.2))
        running.wait_settled(2)


def _assert_shown(url: str) -> None:
    _, ready = get_json(f"{url}/ready")
    (stalled,) = [item for item in ready["partitions"] if item["stalled"]]
    assert (stalled["stage"], stalled["lag"] > 0, stalled["waiting_s"] >= 1.5) == ("session", True, True)
    assert ready["stalled"] == [f"{stalled['topic']}-{stalled['partition']}"]
    assert by_label(series(f"{url}/metrics"), "tgate_partition_stalled", "stage") == {"session": 1}


def test_a_stop_in_good_order_closes_the_port(broker: RunningBroker, tmp_path: Path) -> None:
    # On a busy machine a start takes longer than what other tests here call a stall.
    with pipeline(broker, "health-stop", tmp_path, **{**WATCHED, "stall_warn_s": 60}) as running:
        worker = running.start_worker()
        url = _url(running)
        _wait_ready(running, url)
        assert running.stop_worker(worker) == 0
        assert [line for line in log_lines(tmp_path / "worker-0.log") if line["level"] != "info"] == []
        # The same port again, at once: a restart must not find it taken.
        running.start_worker(health_port=int(url.rpartition(":")[2]))
        assert _url(running, 1) == url
        _wait_ready(running, url)
