"""The worker as a process: how a crash ends it. How signals do is tested with `tgate up`."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import faust
import pytest

from streams import worker
from streams.errors import NewerState
from streams.settings import load


def test_a_crash_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    async def prepare(*_: object) -> None: ...

    async def start(_: object) -> None:
        raise RuntimeError("told to crash")

    def build(*_: object) -> faust.App:
        return faust.App("crashes", datadir=str(tmp_path), loop=asyncio.get_event_loop())

    monkeypatch.setattr(worker, "prepare", prepare)
    monkeypatch.setattr(worker, "build", build)
    monkeypatch.setattr(worker.GateWorker, "start", start)
    assert worker.run(load(environ={}).settings, lambda: pytest.fail("it never was ready")) == worker.EXIT_CRASHED


def test_an_error_on_purpose_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The command line says it in a sentence; a crash it could only name."""

    async def start(self: worker.GateWorker) -> None:
        self._crash(NewerState("a stored SessionState has codec version 99"))

    monkeypatch.setattr(worker.GateWorker, "start", start)
    with pytest.raises(NewerState, match="codec version 99"):
        worker.run_app(lambda: faust.App("ends", datadir=str(tmp_path)), lambda: pytest.fail("it never was ready"))


@pytest.mark.parametrize("arguments", [("--help",), ("worker", "--help")])
def test_the_help_of_fausts_command_line_needs_no_broker(arguments: tuple[str, ...], tmp_path: Path) -> None:
    environ = {**os.environ, "TGATE_BOOTSTRAP_SERVERS": "127.0.0.1:1", "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "faust", "-A", "streams", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith("Usage: ")) == (0, True), done.stderr
