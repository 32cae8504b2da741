"""tgate up as people use it: a process of its own, others beside it, and an end that leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streams.cli.invocation import ADDRESS_FILE
from tests.cli.running import Topics

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
FEW = ("input", "log", "candidate", "output")


def _tgate(directory: Path, *args: str, variables: Mapping[str, str] = {}, **options: Any) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TGATE_")}
    environ.update(variables)
    return subprocess.Popen(
        [sys.executable, "-m", "streams", *args],
        cwd=directory,
        env={**environ, "PYTHONPATH": str(ROOT)},
        text=True,
        **options,
    )


def _done(directory: Path, *args: str) -> subprocess.CompletedProcess[str]:
    with _tgate(directory, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def _read_until(process: subprocess.Popen[str], text: str) -> str:
    """Read what the process says on stderr, up to the line with this text."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if text in line:
            return said
    raise AssertionError(f"it ended before it said {text!r}: {said}")


@pytest.fixture
def up(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    settings = [f"-s{name}_partitions=1" for name in FEW]
    process = _tgate(tmp_path, "up", *settings, "-sscore_wait_s=0.2", stderr=subprocess.PIPE)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_up_serves_other_terminals_and_ends_cleanly(up: subprocess.Popen[str], tmp_path: Path) -> None:
    said = _read_until(up, "tgate session show s1")
    assert "broker: embedded development broker Tansu" in said
    assert "keeps nothing when it stops" in said
    address = (tmp_path / ADDRESS_FILE).read_text().split()[0]
    assert address in said

    published = _done(tmp_path, "publish", str(ROOT / "examples/three_sessions.jsonl"))
    assert (published.returncode, published.stdout) == (0, "published 16 traces, 16 scores\n")
    deadline = time.monotonic() + PATIENCE_S
    found: set[str] = set()
    while len(found) < 2 and time.monotonic() < deadline:
        notices = _done(tmp_path, "notices", "--json")
        found = {json.loads(line)["session_id"] for line in notices.stdout.splitlines()}
    assert found == {"stalls", "falls-back"}
    assert "posted: it has a problem" in _done(tmp_path, "session", "show", "stalls").stdout

    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE_S) == 0
    assert up.stderr is not None
    assert up.stderr.read().endswith("ended\n")
    assert not (tmp_path / ADDRESS_FILE).exists()
    _assert_silent(address)


def test_a_second_up_in_the_directory_leaves_the_first_one_its_address(
    up: subprocess.Popen[str], tmp_path: Path
) -> None:
    _read_until(up, "ready")
    first = (tmp_path / ADDRESS_FILE).read_text()
    second = _tgate(tmp_path, "up", *(f"-s{name}_partitions=1" for name in FEW), stderr=subprocess.PIPE)
    with second:
        try:
            said = _read_until(second, "tgate session show s1")
            assert "tgate session show s1 --bootstrap 127.0.0.1:" in said
            second.send_signal(signal.SIGTERM)
            assert second.wait(PATIENCE_S) == 0
        finally:
            second.kill()
    assert (tmp_path / ADDRESS_FILE).read_text() == first


def test_up_and_worker_run_on_brokers_that_are_named(bare: Topics, tmp_path: Path) -> None:
    with _tgate(tmp_path, "up", variables=bare.environ, stderr=subprocess.PIPE) as process:
        try:
            said = _read_until(process, "ready")
            assert f"broker: yours on {bare.environ['TGATE_BOOTSTRAP_SERVERS']}" in said
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    with _tgate(tmp_path, "worker", variables=bare.environ, stderr=subprocess.PIPE) as process:
        try:
            _read_until(process, "ready")
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def test_a_signal_before_the_worker_runs_ends_the_broker_too(up: subprocess.Popen[str]) -> None:
    said = _read_until(up, "broker: ")
    address = said.partition(" on ")[2].partition(": ")[0]
    up.send_signal(signal.SIGTERM)
    assert up.wait(PATIENCE_S) == 0
    _assert_silent(address)


def test_following_ends_quietly_with_ctrl_c_and_with_its_reader(up: subprocess.Popen[str], tmp_path: Path) -> None:
    _read_until(up, "ready")
    _done(tmp_path, "publish", str(ROOT / "examples/three_sessions.jsonl"))
    command = ("reports", "--follow", "--json", "--from-start")
    with _tgate(tmp_path, *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert json.loads(following.stdout.readline())["session_id"]
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE_S) == 130
        assert following.stderr.read() == ""
    with _tgate(tmp_path, *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        following.stdout.close()
        assert following.wait(PATIENCE_S) == 0
        assert following.stderr.read() == ""


def _assert_silent(address: str) -> None:
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the broker in /proc")
def test_a_broker_that_ends_by_itself_ends_up(up: subprocess.Popen[str]) -> None:
    """There is nothing to wait for: it says so, and the exit code is that of a failure."""
    _read_until(up, "tgate session show s1")
    children = Path(f"/proc/{up.pid}/task/{up.pid}/children").read_text().split()
    (broker,) = (pid for pid in children if b"tansu" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(int(broker), signal.SIGKILL)
    _read_until(up, "has ended; what it held is gone")
    assert up.wait(PATIENCE_S) == 1


@pytest.fixture
def with_evaluators(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    settings = [f"-s{name}_partitions=1" for name in FEW]
    config = ("--config", str(ROOT / "examples/evaluators.toml"))
    process = _tgate(tmp_path, "up", "--evaluators", *config, *settings, stderr=subprocess.PIPE)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_up_with_evaluators_scores_what_is_published_and_ends_both(
    with_evaluators: subprocess.Popen[str], tmp_path: Path
) -> None:
    """On a machine without any key: embeddings on every trace, rules after the gate, session metrics each turn."""
    said = _read_until(with_evaluators, "evaluators ready")
    assert "the offline judge `rules` judges, texts are compared by wordllama" in said
    line = {"session_id": "s", "input": "Open the door.", "output": "The door is locked, I try the key again."}
    lines = "".join(json.dumps({**line, "trace_id": f"t{number}"}) + "\n" for number in range(3))
    (tmp_path / "traces.jsonl").write_text(lines)
    assert _done(tmp_path, "publish", "traces.jsonl").returncode == 0
    deadline = time.monotonic() + PATIENCE_S
    reports: list[dict[str, Any]] = []
    while len(reports) < 6 and time.monotonic() < deadline:
        read = _done(tmp_path, "reports", "--from-start", "--json")
        reports = [json.loads(line) for line in read.stdout.splitlines()]
    found = {score["metric"] for report in reports for score in report["scores"] if score["value"] is not None}
    assert found >= {"coherence", "loop_detection", "tool_correctness", "agent_reliability"}
    assert "regression:loop_detection" in {name for report in reports for name in report["signatures"]}
    with_evaluators.send_signal(signal.SIGINT)
    assert with_evaluators.wait(PATIENCE_S) == 0
    assert with_evaluators.stderr is not None
    assert with_evaluators.stderr.read().endswith("ended\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the evaluators in /proc")
def test_evaluators_that_end_by_themselves_end_up(with_evaluators: subprocess.Popen[str]) -> None:
    _read_until(with_evaluators, "evaluators ready")
    children = Path(f"/proc/{with_evaluators.pid}/task/{with_evaluators.pid}/children").read_text().split()
    (child,) = (pid for pid in children if b"evaluators" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(int(child), signal.SIGKILL)
    _read_until(with_evaluators, "the evaluators have ended with code -9")
    assert with_evaluators.wait(PATIENCE_S) == 1
