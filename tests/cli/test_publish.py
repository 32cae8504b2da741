"""tgate publish, against a broker: what goes in, what is refused, what is said."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streams.cli.pace import Pace
from streams.engine import partition_for
from streams.topics import EVAL_SCORES, TRACE_INGESTED
from streams.wire import Wire
from tests.cli.running import PARTITIONS, Topics

TRACE = '{"session_id": "s1", "trace_id": "t1"}'
SCORE = '{"session_id": "s1", "trace_id": "t1", "name": "task_completion", "value": 0.4}'


def test_lines_by_hand_are_published_and_readable(topics: Topics) -> None:
    result = topics.run("publish", "-", stdin=f"{TRACE}\n{SCORE}")
    assert (result.exit_code, result.stdout) == (0, "published 1 traces, 1 scores\n")
    (trace,) = topics.records(TRACE_INGESTED)
    (score,) = topics.records(EVAL_SCORES)
    assert trace.key == score.key == b"s1"
    assert trace.partition == score.partition == partition_for(b"s1", PARTITIONS)
    wire = Wire()
    assert wire.read_trace(trace.value, trace.key, 0).trace.trace_id == "t1"
    assert wire.read_score(score.value, score.key, score.timestamp).score.value == 0.4


def test_bad_lines_are_named_and_the_rest_goes_through(topics: Topics, tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(f'{TRACE}\nrubbish \x1b[31m\n\n{{"trace_id": "t2"}}\n{SCORE}\n')
    result = topics.run("publish", str(file))
    assert result.exit_code == 1
    assert result.stdout == "published 1 traces, 1 scores, refused 2 lines\n"
    first, second = result.stderr.splitlines()
    assert first.startswith(f"refused {file}:2: no JSON")
    assert second.startswith(f"refused {file}:4: session_id is missing")
    assert "\x1b" not in result.output


def test_a_file_may_begin_with_a_byte_order_mark(topics: Topics, tmp_path: Path) -> None:
    """As some editors write it; anywhere else it is no JSON."""
    file = tmp_path / "some.jsonl"
    file.write_text(f"{TRACE}\n\ufeff{SCORE}\n", "utf-8-sig")
    result = topics.run("publish", str(file))
    assert (result.exit_code, result.stdout) == (1, "published 1 traces, 0 scores, refused 1 lines\n")
    assert result.stderr.startswith(f"refused {file}:2: no JSON")


def test_counts_and_refusals_for_programs(topics: Topics) -> None:
    result = topics.run("publish", "--json", "-", stdin=f"{TRACE}\nrubbish\n")
    refused, counts = map(json.loads, result.stdout.splitlines())
    assert (refused["file"], refused["line"]) == ("standard input", 2)
    assert counts == {"traces": 1, "scores": 0, "refused": 1}
    assert result.exit_code == 1


def test_gzip_several_files_and_a_limit(topics: Topics, tmp_path: Path) -> None:
    packed, plain = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"
    packed.write_bytes(
        gzip.compress("".join(f'{{"session_id": "s{n}", "trace_id": "t"}}\n' for n in range(3000)).encode())
    )
    plain.write_text(f"{SCORE}\n" * 10)
    result = topics.run("publish", "--limit", "3005", str(packed), str(plain))
    assert (result.exit_code, result.stdout) == (0, "published 3000 traces, 5 scores\n")
    traces = topics.records(TRACE_INGESTED)
    assert len({record.key for record in traces}) == 3000
    assert len({json.loads(record.value)["score_id"] for record in topics.records(EVAL_SCORES)}) == 5


def test_a_file_that_cannot_be_read_does_not_stop_the_others(topics: Topics, tmp_path: Path) -> None:
    broken, whole = tmp_path / "broken.gz", tmp_path / "whole.jsonl"
    broken.write_bytes(gzip.compress(f"{TRACE}\n".encode() * 100)[:-20])
    whole.write_text(f"{TRACE}\n")
    result = topics.run("publish", str(tmp_path / "nowhere"), str(broken), str(whole))
    assert result.exit_code == 1
    assert f"refused {tmp_path / 'nowhere'}: No such file or directory" in result.stderr
    assert f"refused {broken}: cannot be read on: " in result.stderr
    assert "refused 2 lines" in result.stdout
    assert topics.records(TRACE_INGESTED)


def test_a_record_over_the_limit_is_refused(topics: Topics) -> None:
    long = json.dumps({"session_id": "s1", "trace_id": "t1", "input": json.dumps("x" * 20_000)})
    result = topics.run("publish", "-s", "max_record_bytes=10000", "-", stdin=f"{long}\n{TRACE}\n")
    assert result.exit_code == 1
    assert "refused standard input:1: takes more than 10000 bytes, the setting max_record_bytes" in result.stderr
    assert len(topics.records(TRACE_INGESTED)) == 1


def test_a_pipe_is_published_as_it_comes_and_ctrl_c_does_not_wait_for_it(topics: Topics) -> None:
    command = [sys.executable, "-m", "streams", "publish", "-"]
    environ = {**os.environ, **topics.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(f"{TRACE}\n")
        process.stdin.flush()
        while not topics.records(TRACE_INGESTED):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        # Its standard input is still open here.
        assert process.wait(60) == 130
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == "published 1 traces, 0 scores\n"
        assert process.stderr.read() == ""


def test_the_pace_follows_the_recorded_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr("streams.cli.pace.time.monotonic", lambda: clock)
    pace = Pace(10)
    assert pace.pause(50_000) == 0
    assert pace.pause(70_000) == pytest.approx(2.0)
    assert pace.pause(None) == 0
    clock = 103.0
    assert pace.pause(70_000) == pytest.approx(-1.0)
    assert Pace(None).pause(5) == 0
