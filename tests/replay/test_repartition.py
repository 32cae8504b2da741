"""Other partition counts: sessions go on in the new topics as if nothing had happened."""

import gzip
import json
import secrets
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streams.broker import RunningBroker
from streams.cli import cli
from streams.lines import Line
from streams.replay.files import Reader
from streams.replay.folding import Replay
from streams.replay.timeline import Timeline, in_order
from streams.settings import load
from streams.topics import SESSION_LOG, TURN_REPORTS
from streams.wire import Wire
from tests.pipeline.harness import Pipeline, pipeline

RECORDING = Path(__file__).parents[2] / "examples" / "recording" / "sessions.jsonl.gz"
SETTINGS = {"tier1_metrics": "task_completion", "tier2_metrics": "tool_correctness", "circuit_breaker_max_notices": 0}


def recorded(count: int) -> list[dict[str, Any]]:
    with gzip.open(RECORDING, "rt") as recording:
        return [json.loads(line) for line in islice(recording, count)]


def tgate(running: Pipeline, *args: str, **changes: Any) -> Result:
    values = {**running.overrides, **changes}
    environ = {f"TGATE_{name.upper()}": v if isinstance(v, str) else json.dumps(v) for name, v in values.items()}
    return CliRunner().invoke(cli, args, env=environ)


def told(report: Any) -> tuple[Any, ...]:
    """Return what a report says of tier 1, without where and when; a tier-2 score may come before it or after."""
    tier1 = [item for item in report["scores"] if item["tier"] == 1]
    scores = [(item["metric"], item["value"], item["conditions"], item["peak"]) for item in tier1]
    gates = [(item["peak_before"], item["traces_since_gain_before"], item["peak_after"]) for item in report["gates"]]
    return report["turn_id"], report["turn_number"], report["decision"], report["signatures"], scores, gates


def expected(lines: list[dict[str, Any]], running: Pipeline) -> list[tuple[Any, ...]]:
    """Return what one uninterrupted fold says of the lines."""
    wire = Wire("json")
    replay = Replay()
    timeline = Timeline(replay, running.settings.rules)
    texts = [Line(at, json.dumps(line).encode(), 0) for at, line in enumerate(lines)]
    outputs = [out for item in in_order(Reader(wire).read("", texts)) for out in timeline.feed(item)] + timeline.end()
    return [told(json.loads(wire.write(out))) for out in outputs if type(out).__name__ == "Report"]


@pytest.fixture
def running(broker: RunningBroker, tmp_path: Path) -> Any:
    with pipeline(broker, f"move-{secrets.token_hex(4)}", tmp_path, **SETTINGS) as made:
        yield made


def test_detection_goes_on_in_topics_with_other_counts(running: Pipeline) -> None:
    lines = recorded(900)
    traces = [number for number, line in enumerate(lines) if "score_id" not in line]
    half = len(traces) // 2
    worker = running.start_worker()
    running.publish(lines[: traces[half]])
    running.wait_settled(half)
    assert running.stop_worker(worker) == 0

    changes = {"log_partitions": 3, "candidate_partitions": 5}
    result = tgate(running, "topics", "repartition", "v2-", **changes)
    assert result.exit_code == 0, result.output
    spanning = {line["session_id"] for line in lines[: traces[half]]}
    assert f"carried over {len(spanning)} sessions, copied {half} traces" in result.stderr
    file = running.directory / "moved.toml"
    file.write_text(result.stdout)
    moved = load(config=file, environ={}).settings
    assert (moved.log_partitions, moved.candidate_partitions) == (3, 5)
    assert moved.topic_names[SESSION_LOG] == f"v2-{running.topics[SESSION_LOG].name}"
    assert moved.topic_names[TURN_REPORTS] == running.topics[TURN_REPORTS].name

    names = {"topic_names": moved.topic_names, **changes}
    worker = running.start_worker(**names)
    running.publish(lines[traces[half] :])
    running.wait_settled(len(traces))
    assert running.stop_worker(worker) == 0
    reports = [told(report) for report in running.values(TURN_REPORTS)]
    wanted = expected(lines, running)
    assert len(reports) == len(traces), "nothing is said twice"
    assert sorted(reports) == sorted(wanted)
    assert sum(report[1] > 1 for report in reports[half:]) > 100
    assert tgate(running, "export", SESSION_LOG, "--out", str(running.directory), **names).exit_code == 0
    log = [json.loads(line)["body"] for line in (running.directory / f"{SESSION_LOG}.jsonl").read_text().splitlines()]
    assert sum("SessionState" in body for body in log) == len(spanning)
    again = tgate(running, "topics", "repartition", "v2-", **changes)
    assert again.exit_code != 0
    assert "hold records already: choose another prefix" in " ".join(again.stderr.split())


def test_what_is_refused(running: Pipeline) -> None:
    def said(*args: str, **changes: Any) -> str:
        result = tgate(running, "topics", "repartition", *args, **changes)
        assert result.exit_code in {1, 2}, result.output
        return " ".join(result.stderr.split())

    assert "log_partitions 4 and candidate_partitions 2 are the counts" in said("v2-")
    worker = running.start_worker()
    lines = recorded(60)
    lines = lines[: max(number for number, line in enumerate(lines) if "score_id" in line) + 1]
    running.publish(lines)
    running.wait_settled(sum("score_id" not in line for line in lines))
    if running.broker.fences:
        assert "workers of" in said("v2-", log_partitions=5)
    assert running.stop_worker(worker) == 0
    assert "did not finish with" in said("v2-", log_partitions=5, app_id="another")
    log_record = running.read(SESSION_LOG)[-1]
    running.publish([(SESSION_LOG, log_record.value, log_record.key)])
    assert "holds records that no worker has folded" in said("v2-", log_partitions=5)
    result = tgate(running, "topics", "repartition", "v2-", candidate_partitions=5)
    assert result.exit_code == 0, result.output
    assert "carried over 0 sessions" in result.stderr
    assert '"v2-' in result.stdout
