"""The listener: which codes it answers, where it listens, and what it says when it cannot."""

import asyncio
import json
import socket
from dataclasses import replace

import pytest

from streams.errors import BadSettings
from streams.health.listener import Listener, bind
from streams.health.status import PartitionStatus, WorkerStatus
from streams.metrics import Metrics
from streams.settings import load
from tests.health.probe import get

PARTITION = PartitionStatus("session", "session-log", 3, 7, 9, 2, "2026-01-05T09:00:00.000+00:00", 1.5, stalled=False)
WELL = WorkerStatus(
    live=True, ready=True, loop_blocked_s=0.0, broker_away=False, recovering=(), stalled=(), partitions=(PARTITION,)
)


def answers(status: WorkerStatus, *paths: str) -> list[tuple[int, bytes]]:
    async def ask() -> list[tuple[int, bytes]]:
        listener = Listener(bind("127.0.0.1", 0), lambda: status, Metrics().registry)
        await listener.start()
        try:
            return [await asyncio.to_thread(get, listener.url + path) for path in paths]
        finally:
            await listener.stop()

    return asyncio.run(ask())


def test_well() -> None:
    live, ready, metrics, other = answers(WELL, "/live", "/ready", "/metrics", "/")
    assert (live[0], json.loads(live[1])) == (200, {"live": True, "loop_blocked_s": 0.0})
    assert ready[0] == 200
    assert json.loads(ready[1])["partitions"] == [
        {
            "stage": "session",
            "topic": "session-log",
            "partition": 3,
            "position": 7,
            "end": 9,
            "lag": 2,
            "last_progress": "2026-01-05T09:00:00.000+00:00",
            "waiting_s": 1.5,
            "stalled": False,
        }
    ]
    assert b"# HELP tgate_decisions_total" in metrics[1]
    assert b"_created" not in metrics[1]
    assert other[0] == 404


def test_unwell() -> None:
    live, ready = answers(replace(WELL, ready=False), "/live", "/ready")
    assert (live[0], ready[0]) == (200, 503)
    live, ready = answers(replace(WELL, ready=False, live=False), "/live", "/ready")
    assert (live[0], ready[0]) == (503, 503)


def test_it_listens_on_loopback_unless_told_otherwise_and_not_at_all_by_default() -> None:
    settings = load(environ={}).settings
    assert (settings.health_host, settings.health_port) == ("127.0.0.1", None)


def test_a_taken_port_is_bad_settings() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadSettings, match=rf"health_port = {port}: cannot listen on 127.0.0.1: .* a port each"):
            bind("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_bad_settings() -> None:
    with pytest.raises(BadSettings, match=r"cannot listen on 203\.0\.113\.1"):
        bind("203.0.113.1", 0)


def test_a_worker_must_not_end_before_it_warns() -> None:
    with pytest.raises(BadSettings, match="stall_exit_s = 5 must not be less than stall_warn_s = 30"):
        load(overrides={"stall_exit_s": 5}, environ={})
    assert load(overrides={"stall_exit_s": 0}, environ={}).settings.stall_exit_s == 0
