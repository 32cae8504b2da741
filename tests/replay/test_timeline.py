"""Files and input topics carry no ticks: waits end where the next record is later, and at the end."""

import json
from pathlib import Path

from click.testing import CliRunner

from streams.cli import cli
from streams.core.model import Report, Score, Trace, TraceStatus
from streams.core.rules import Rules
from streams.lines import Line
from streams.replay.choice import Choice
from streams.replay.files import Reader
from streams.replay.folding import Replay
from streams.replay.timeline import Input, Timeline, in_order
from streams.wire import Wire

ROOT = Path(__file__).parents[2]


def trace(number: int, time: int, session: str = "s") -> Input:
    return Input(time, session, Trace(f"{session}-{number}", "default", TraceStatus.COMPLETED, time))


def score(number: int, time: int, value: float, metric: str = "task_completion", session: str = "s") -> Input:
    name = f"{session}-{number}"
    return Input(time, session, Score(f"{name}-{metric}", name, metric, value, created_at=time))


def decided(inputs: list[Input], rules: Rules, choice: Choice | None = None) -> list[tuple[str, int]]:
    replay = Replay(choice=choice or Choice())
    timeline = Timeline(replay, rules)
    outputs = [output for item in in_order(inputs) for output in timeline.feed(item)]
    outputs += timeline.end()
    return [(item.turn_id, item.decided_at) for item in outputs if isinstance(item, Report)]


def test_a_missing_score_is_waited_for_until_the_wait_is_over() -> None:
    """coherence never comes: the turn is decided score_wait_s after its latest score."""
    inputs = [trace(1, 1000), score(1, 1500, 0.4), trace(2, 60_000), score(2, 60_100, 0.5)]
    assert decided(inputs, Rules()) == [("s/s-1", 3500), ("s/s-2", 62_100)]


def test_a_busy_session_does_not_hold_up_the_wait_of_another() -> None:
    """No pause is ever longer than a wait, and the wait is over all the same."""
    busy = [item for n in range(40) for item in (trace(n, n * 500, "busy"), score(n, n * 500, 0.9, session="busy"))]
    inputs = [trace(1, 1000), score(1, 1500, 0.4), *busy]
    rules = Rules(tier1_metrics=("task_completion",))
    assert dict(decided(inputs, Rules()))["s/s-1"] == 3500
    assert dict(decided(inputs, rules))["s/s-1"] == 1500


def test_the_order_is_that_of_times_not_of_the_file() -> None:
    inputs = [score(2, 2100, 0.5), trace(2, 2000), score(1, 1100, 0.4), trace(1, 1000)]
    rules = Rules(tier1_metrics=("task_completion",))
    assert decided(inputs, rules) == [("s/s-1", 1100), ("s/s-2", 2100)]


def test_scores_without_traces_stand_for_them() -> None:
    rules = Rules(tier1_metrics=("task_completion",), unannounced_wait_s=0)
    assert decided([score(1, 1000, 0.2), score(2, 2000, 0.3)], rules) == [("s/s-1", 1000), ("s/s-2", 2000)]


def test_a_stretch_of_time() -> None:
    inputs = [trace(n, n * 1000) for n in range(5)] + [score(n, n * 1000 + 1, 0.5) for n in range(5)]
    rules = Rules(tier1_metrics=("task_completion",))
    shown = decided(inputs, rules, Choice(since=2000, until=4000))
    assert shown == [("s/s-2", 2001), ("s/s-3", 3001)]


def test_lines_by_hand_take_the_time_of_the_line_before_and_stay_the_same() -> None:
    lines = [
        b'{"session_id": "s", "trace_id": "t1", "started_at": 5000}',
        b'{"session_id": "s", "trace_id": "t1", "name": "m", "value": 0.5}',
        b'{"session_id": "s", "trace_id": "t2"}',
        b"rubbish",
    ]
    numbered = [Line(number, text, 0) for number, text in enumerate(lines, 1)]
    readers = [Reader(Wire()), Reader(Wire())]
    first, second = ([*reader.read("f", numbered)] for reader in readers)
    assert [item.time for item in first] == [5000, 5000, 5000]
    assert first == second
    ((name, number, reason),) = readers[0].refused
    assert (name, number) == ("f", 4)
    assert reason.startswith("no JSON")


def test_the_hand_written_file() -> None:
    file = str(ROOT / "examples" / "three_sessions.jsonl")
    result = CliRunner().invoke(cli, ("replay", file, "--json"))
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["session_id"]: row["signatures"] for row in rows} == {
        "stalls": ["stall:task_completion"],
        "falls-back": ["regression:task_completion"],
    }


def test_the_table_on_the_screen() -> None:
    file = str(ROOT / "examples" / "three_sessions.jsonl")
    result = CliRunner().invoke(cli, ("replay", file, "-s", "gate_window=100"))
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0].endswith("task_completion 0.4 on trace falls-back-4: fell back from the peak 0.62")
    assert lines[1:] == ["notices 1 (trend 1)", "sessions with a notice 1 of 3", "turns decided 16"]


def test_wrong_offsets_and_mixed_options() -> None:
    for args, said in (
        (("--offsets", "3"), "say 3:1000-2000"),
        (("--diff", "recorded", "recorded", "--recorded"), "--diff lists differences"),
    ):
        result = CliRunner().invoke(cli, ("replay", *args))
        assert result.exit_code == 2
        assert said in " ".join(result.stderr.split())
