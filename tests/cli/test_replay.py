"""tgate replay over a log that was written by hand."""

import json

from streams.core.log import LogRecord
from streams.core.model import Score, Trace, TraceStatus
from streams.core.rules import Rules
from streams.engine import Out
from streams.topics import SESSION_LOG
from streams.wire import Wire
from tests.cli.running import Topics

RULES = Rules(tier1_metrics=("task_completion",), tier2_metrics=(), gate_window=1)


def test_a_partition_is_folded_by_offsets_whatever_its_times(topics: Topics) -> None:
    """Where the appender's clock gives the times, they may run backwards; the fold never does."""
    wire = Wire()
    name = topics.settings.topic_names[SESSION_LOG]
    bodies: list[tuple[int, Trace | Score | Rules]] = [(9000, RULES)]
    for number in range(3):
        time = 9000 - 1000 * number
        bodies.append((time, Trace(f"t{number}", "p", TraceStatus.COMPLETED, number)))
        bodies.append((time - 500, Score(f"c{number}", f"t{number}", "task_completion", 0.2)))
    outs = [
        Out(
            name,
            0,
            None if isinstance(body, Rules) else b"s",
            wire.write_internal(LogRecord(0, 0, body, None if isinstance(body, Rules) else "s")),
            timestamp_ms=time,
        )
        for time, body in bodies
    ]
    topics.put([], *outs)
    result = topics.run("replay", "--json")
    assert result.exit_code == 0, result.output
    # A stall at the second trace; the third repeats it at once, which is no news.
    assert [json.loads(line)["turn_id"] for line in result.stdout.splitlines()] == ["s/t1"]
    shown = topics.run("replay")
    assert "turns decided 3" in " ".join(shown.stdout.split())
    assert f"rules {RULES.hash}" in shown.stderr


def test_an_empty_log_and_a_log_without_rules(topics: Topics) -> None:
    assert "no rules recorded" in topics.run("replay").stderr
    value = Wire().write_internal(LogRecord(0, 0, Trace("t", "p", TraceStatus.COMPLETED, 1), "s"))
    topics.put([], Out(topics.settings.topic_names[SESSION_LOG], 1, b"s", value))
    result = topics.run("replay")
    assert result.exit_code == 0
    assert "1 records of partitions that hold no rules" in result.stderr
    assert "nothing to learn from" in topics.run("calibrate").stderr


def test_unreadable_records_are_named(topics: Topics) -> None:
    topics.put([], Out(topics.settings.topic_names[SESSION_LOG], 0, b"s", b"rubbish"))
    result = topics.run("replay")
    assert result.exit_code == 0
    assert f"left out {topics.settings.topic_names[SESSION_LOG]}-0:0" in result.stderr
