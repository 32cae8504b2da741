"""A live run's logs, replayed: the same bytes, under the recorded rules; other notices under others."""

import asyncio
import gzip
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streams.agents.outbox import INTERNAL, ROLES, Output
from streams.broker import RunningBroker
from streams.cli import cli
from streams.replay.choice import EVERYTHING, Choice
from streams.replay.folding import CandidateReplay, Replay
from streams.replay.running import replay_candidates, replay_log
from streams.replay.topics import TopicReader
from streams.topics import BY_ROLE, EVAL_CASES, NEEDS_HUMAN, NOTICE_CANDIDATES, NOTICES, TURN_REPORTS
from streams.wire import Wire
from tests.pipeline.harness import Pipeline, pipeline

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "tier1_metrics": "task_completion",
    "tier2_metrics": "tool_correctness",
    "circuit_breaker_max_notices": 3,
    "capture_eval_cases": True,
}


@dataclass(frozen=True)
class Live:
    """A pipeline that has seen the first recorded sessions, with a pause in which everything was decided."""

    pipeline: Pipeline
    pause: int
    """Its time, Unix milliseconds."""
    later: int
    """Turns after it."""


@pytest.fixture(scope="module")
def run(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with gzip.open(ROOT / "examples" / "recording" / "sessions.jsonl.gz", "rt") as recording:
        lines = [json.loads(line) for line in islice(recording, 900)]
    traces = [number for number, line in enumerate(lines) if "score_id" not in line]
    half = len(traces) // 2
    name = f"replay-{secrets.token_hex(4)}"
    with pipeline(broker, name, tmp_path_factory.mktemp("live"), **SETTINGS) as running:
        worker = running.start_worker()
        running.publish(lines[: traces[half]])
        running.wait_settled(half)
        time.sleep(0.01)  # log records carry whole milliseconds
        pause = round(time.time() * 1000)
        running.publish(lines[traces[half] :])
        running.wait_settled(len(traces))
        assert running.stop_worker(worker) == 0
        yield Live(running, pause, len(traces) - half)


@pytest.fixture
def live(run: Live) -> Pipeline:
    return run.pipeline


async def _log(live: Pipeline, choice: Choice = EVERYTHING) -> list[Output]:
    found: list[Output] = []

    async def take(_: int, outputs: Sequence[Output]) -> None:
        found.extend(outputs)

    replay = Replay(choice=choice, topic=live.topics["session-log"].name)
    await replay_log(TopicReader(live.settings, choice), [replay], take, lambda _: None)
    return found


async def _candidates(live: Pipeline) -> list[Output]:
    found: list[Output] = []

    async def take(_: int, outputs: Sequence[Output]) -> None:
        found.extend(outputs)

    await replay_candidates(TopicReader(live.settings, EVERYTHING), CandidateReplay(), take, lambda _: None)
    return found


def _bytes(wire: Wire, outputs: list[Output], role: str) -> set[bytes]:
    mine = [output for output in outputs if ROLES[type(output)] == role]
    return {wire.write_internal(output) if role in INTERNAL else wire.write(output) for output in mine}


def _live(live: Pipeline, role: str) -> set[bytes]:
    return {record.value for record in live.read(role)}


def test_equal_bytes(live: Pipeline) -> None:
    """Reports and candidates from the session log, everything of the breaker from the candidates: byte for byte."""
    wire = Wire.of(live.settings)
    outputs = asyncio.run(_log(live))
    for role in (TURN_REPORTS, NOTICE_CANDIDATES):
        found = _live(live, role)
        assert found
        assert _bytes(wire, outputs, role) == found, role
    outputs = asyncio.run(_candidates(live))
    for role in (NOTICES, NEEDS_HUMAN, EVAL_CASES):
        found = _live(live, role)
        assert found
        assert _bytes(wire, outputs, role) == found, role


def test_a_stretch_of_sessions_is_decided_as_in_the_whole(live: Pipeline) -> None:
    """What is chosen is decided with everything known from before."""
    everything = asyncio.run(_log(live))
    reports = [item for item in everything if ROLES[type(item)] == TURN_REPORTS]
    some = frozenset(list(dict.fromkeys(item.session_id for item in reports))[:3])
    shown = asyncio.run(_log(live, Choice(sessions=some)))
    assert shown == [item for item in everything if _session(item) in some]
    middle = sorted(item.decided_at for item in reports)[len(reports) // 2]
    later = asyncio.run(_log(live, Choice(since=middle)))
    assert [item for item in later if item in reports] == [item for item in reports if item.decided_at >= middle]


def _session(item: Any) -> str | None:
    return getattr(item, "notice", None).session_id if hasattr(item, "breaker_max_notices") else item.session_id


def _tgate(live: Pipeline, *args: str) -> Result:
    environ = {
        "TGATE_BOOTSTRAP_SERVERS": live.broker.bootstrap,
        "TGATE_TOPIC_NAMES": json.dumps({role: topic.name for role, topic in live.topics.items()}),
    }
    result = CliRunner().invoke(cli, args, env=environ)
    assert result.exit_code == 0, result.output
    return result


def test_the_command_shows_what_was_posted(live: Pipeline) -> None:
    shown = _tgate(live, "replay", "--from", "notice-candidates", "--json").stdout.splitlines()
    assert sorted(shown) == sorted({record.value.decode() for record in live.read(NOTICES)})


def test_differences_of_one_setting(live: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(
        'tier1_metrics = ["task_completion"]\ntier2_metrics = ["tool_correctness"]\ngate_window = 100\n'
    )
    result = _tgate(live, "replay", "--diff", "recorded", str(tmp_path / "b.toml"), "--json")
    assert "gate_window 5 -> 100" in result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    lost = [row for row in rows if row["difference"] == "lost"]
    assert lost
    assert all("stall:task_completion" in row["before"]["signatures"] for row in lost)
    one = _tgate(live, "replay", "-s", "gate_window=100")
    assert "unlike the recorded ones: gate_window 5 -> 100" in one.stderr


def test_files_and_other_topics_hold_the_same(live: Pipeline, tmp_path: Path) -> None:
    prefix = f"again-{secrets.token_hex(3)}-"
    _tgate(live, "replay", "--out", str(tmp_path), "--to-topics", prefix)
    reports = set((tmp_path / "turn-reports.jsonl").read_bytes().splitlines())
    assert reports == _live(live, TURN_REPORTS)
    again = {role: prefix + topic.name for role, topic in live.topics.items()}
    environ = {"TGATE_BOOTSTRAP_SERVERS": live.broker.bootstrap, "TGATE_TOPIC_NAMES": json.dumps(again)}
    shown = CliRunner().invoke(cli, ("reports", "--from-start", "--json"), env=environ)
    assert {line.encode() for line in shown.stdout.splitlines()} == reports


def test_exported_inputs_replay(live: Pipeline, tmp_path: Path) -> None:
    """Inputs as files give what the input topics give; one trace a turn and every score in time: also what was live."""
    _tgate(
        live, "export", "trace-ingested", "eval-scores", "session-log", "--places", "--out", str(tmp_path / "placed")
    )
    placed = [json.loads(line) for line in (tmp_path / "placed" / "session-log.jsonl").read_bytes().splitlines()]
    assert {row["partition"] for row in placed} <= set(range(4))
    _tgate(live, "export", "trace-ingested", "eval-scores", "--out", str(tmp_path))
    files = [str(tmp_path / f"{role}.jsonl") for role in ("trace-ingested", "eval-scores")]
    rules = [f"-s{name}={value}" for name, value in SETTINGS.items() if name != "circuit_breaker_max_notices"]
    options = [*rules, "-scircuit_breaker_max_notices=0", "--json"]
    of_files = _tgate(live, "replay", *files, *options).stdout.splitlines()
    of_topics = _tgate(live, "replay", "--from", "inputs", *options).stdout.splitlines()
    of_log = _tgate(live, "replay", "-scircuit_breaker_max_notices=0", "--json").stdout.splitlines()
    told = [{json.loads(line)["notice_id"] for line in lines} for lines in (of_files, of_topics, of_log)]
    assert told[0] == told[1] == told[2] != set()


def test_never_into_the_stages_own_topics(live: Pipeline) -> None:
    environ = {"TGATE_BOOTSTRAP_SERVERS": live.broker.bootstrap}
    result = CliRunner().invoke(cli, ("replay", "--to-topics", ""), env=environ)
    assert result.exit_code == 2
    assert "a prefix is needed" in result.stderr
    assert set(live.topics) == set(BY_ROLE)


def test_cold_begins_in_the_middle_under_the_rules_recorded_before(live: Pipeline, run: Live) -> None:
    """The only rules stand at the start of each partition; they hold, and nothing else from before is folded."""
    everything = [item for item in asyncio.run(_log(live)) if ROLES[type(item)] == TURN_REPORTS]
    replay = Replay(choice=(choice := Choice(since=run.pause, cold=True)), topic=live.topics["session-log"].name)
    found: list[Output] = []

    async def take(_: int, outputs: Sequence[Output]) -> None:
        found.extend(outputs)

    asyncio.run(replay_log(TopicReader(live.settings, choice), [replay], take, lambda _: None))
    assert (len(replay.rules), replay.left_out) == (1, 0)
    reports = [item for item in found if ROLES[type(item)] == TURN_REPORTS]
    later = [item.turn_id for item in everything if item.decided_at >= run.pause]
    assert len(later) == run.later
    assert sorted(item.turn_id for item in reports) == sorted(later)


def test_calibration_from_the_log_is_that_of_the_inputs(live: Pipeline, tmp_path: Path) -> None:
    """One trace a turn, every score in time: the gate's sweep is the same from the log, the topics and live reports."""
    labels = ROOT / "examples" / "recording" / "labels.json"
    args = ("--labels", str(labels), "--json")
    of_log = _tgate(live, "calibrate", *args).stdout
    of_inputs = _tgate(live, "calibrate", "--from", "inputs", *args, "-s", "tier1_metrics=task_completion").stdout
    gate = [[line for line in text.splitlines() if '"kind":"gate"' in line] for text in (of_log, of_inputs)]
    assert gate[0] == gate[1] != []
