"""The worker as a process: how a crash ends it. How signals do is tested with `tgate up`."""

import asyncio
from typing import Any

import faust
import pytest

from streams import worker
from streams.settings import load


def test_a_crash_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    async def prepare(_: object) -> None: ...

    async def start(_: object) -> None:
        raise RuntimeError("told to crash")

    def build(*_: object) -> faust.App:
        return faust.App("crashes", datadir=str(tmp_path), loop=asyncio.get_event_loop())

    monkeypatch.setattr(worker, "prepare", prepare)
    monkeypatch.setattr(worker, "build", build)
    monkeypatch.setattr(worker.GateWorker, "start", start)
    assert worker.run(load(environ={}).settings, lambda: pytest.fail("it never was ready")) == worker.EXIT_CRASHED
