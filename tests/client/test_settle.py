"""The barrier: the right report for each turn, whoever asks and whenever, and an honest answer when there is none."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from streams.broker import RunningBroker, embedded
from streams.client import Gate, Settlement, SettleState, Since
from tests.pipeline.harness import PATIENCE_S, Pipeline, pipeline

ONE_TIER: dict[str, Any] = {"tier1_metrics": "task_completion", "circuit_breaker_max_notices": 0}


async def turn(gate: Gate, session: str, value: float, **fields: Any) -> str:
    async with gate.trace(session, "step", **fields) as trace:
        trace.output = {"value": value}
        trace.score("task_completion", value)
    return trace.turn_id


def tier1(found: Settlement) -> list[float | None]:
    assert found.report is not None
    return [score.value for score in found.report.scores if score.metric == "task_completion"]


def test_each_of_many_concurrent_sessions_gets_its_own_report(broker: RunningBroker, tmp_path: Path) -> None:
    """Forty sessions at once, three turns each; every second one falls back on its last turn."""

    async def play(gate: Gate, number: int) -> None:
        session = f"s-{number}"
        last = 0.2 if number % 2 else 0.8
        for value in (0.3, 0.6, last):
            turn_id = await turn(gate, session, value)
            found = await gate.settle(session, timeout=PATIENCE_S)
            assert found.state is SettleState.LANDED
            assert found.turn_id == turn_id
            assert found.report is not None
            assert found.report.turn_id == turn_id
            assert tier1(found) == [value]
        assert found.outcome == ("posted" if number % 2 else "none")
        assert [notice.turn_id for notice in found.notices] == ([turn_id] if number % 2 else [])

    async def scene(running: Pipeline) -> None:
        async with Gate(running.settings) as gate:
            await asyncio.gather(*(play(gate, number) for number in range(40)))
            assert await gate.pending_sessions() == {}
            assert gate.counts.sent == 240

    with pipeline(broker, "settle-many", tmp_path, **ONE_TIER) as running:
        running.start_worker()
        asyncio.run(scene(running))


def test_a_turn_that_settled_before_is_found_by_another_client(broker: RunningBroker, tmp_path: Path) -> None:
    async def scene(running: Pipeline) -> None:
        turns = {}
        async with Gate(running.settings) as first:
            for number in range(5):
                for value in (0.6, 0.1 * number):
                    turns[f"old-{number}"] = await turn(first, f"old-{number}", value), value
            assert await first.drain(PATIENCE_S) == {}
        async with Gate(running.settings) as second:
            for session, (turn_id, value) in turns.items():
                # One after the other: the partition is open from the second on, and is read again.
                found = await second.settle(session, turn_id, timeout=PATIENCE_S)
                assert found.state is SettleState.LANDED
                assert tier1(found) == [value]
                # One partition of each topic a session, and no other.
                assert len(second._landings._open) <= 3 * (list(turns).index(session) + 1)
            nothing = await second.settle("nobody")
            assert nothing.state is SettleState.NOTHING_PUBLISHED
            unknown = await second.settle("nobody", "nobody/never", timeout=0.5)
            assert unknown.timed_out
            async with second.notices(since=Since.EARLIEST) as notices:
                async with asyncio.timeout(PATIENCE_S):
                    seen = {(await anext(notices)).session_id for _ in range(5)}
            assert seen == turns.keys()

    with pipeline(broker, "settle-late", tmp_path, **ONE_TIER) as running:
        running.start_worker()
        asyncio.run(scene(running))


def test_a_worker_killed_while_many_wait(broker: RunningBroker, tmp_path: Path) -> None:
    """First an honest time-out, then, with another worker, the right report for each."""

    async def scene(running: Pipeline) -> None:
        worker = running.start_worker()
        async with Gate(running.settings) as gate:
            await turn(gate, "k-0", 0.5)
            assert (await gate.settle("k-0", timeout=PATIENCE_S)).state is SettleState.LANDED
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            values = {f"k-{number}": number / 10 for number in range(10)}
            turns = {session: await turn(gate, session, value) for session, value in values.items()}
            early = await asyncio.gather(*(gate.settle(session, timeout=1.0) for session in values))
            assert [found.state for found in early] == [SettleState.TIMED_OUT] * 10
            assert await gate.pending_sessions() == {session: (turn_id,) for session, turn_id in turns.items()}
            waiting = [asyncio.create_task(gate.settle(session, timeout=PATIENCE_S)) for session in values]
            running.start_worker()
            for session, found in zip(values, await asyncio.gather(*waiting), strict=True):
                assert found.state is SettleState.LANDED
                assert found.report is not None
                assert found.turn_id == turns[session] == found.report.turn_id
                assert tier1(found) == [values[session]]

    with pipeline(broker, "settle-kill", tmp_path, **ONE_TIER) as running:
        asyncio.run(scene(running))


@pytest.mark.parametrize("when_full", ["drop", "wait"])
def test_a_dead_broker_neither_stops_nor_breaks_the_agent(when_full: str) -> None:
    async def scene() -> None:
        gate = Gate(
            bootstrap_servers="127.0.0.1:9", queue_records=50, when_full=when_full, flush_s=0.5, barrier_timeout_s=0.5
        )
        began = time.monotonic()
        async with gate:
            notices = gate.notices("dead")
            for value in range(20):
                await turn(gate, "dead", value / 100)
            for _ in range(200):
                gate.offer_score("dead", "task_completion", 0.5, "t")
            assert (await gate.settle("dead")).timed_out
            assert await gate.flush(0.2) is False
            assert await gate.drain(0.2) != {}
            assert notices.take() == []
            assert gate.counts.waiting == 50
            assert gate.counts.dropped == 190
            assert gate.counts.trouble
        assert gate.counts.lost == 50
        assert time.monotonic() - began < PATIENCE_S

    asyncio.run(scene())


def test_a_broker_that_freezes_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    async def scene(running: Pipeline, pid: int) -> None:
        async with Gate(running.settings) as gate:
            await turn(gate, "f", 0.5)
            assert (await gate.settle("f", timeout=PATIENCE_S)).state is SettleState.LANDED
            os.kill(pid, signal.SIGSTOP)
            try:
                frozen = [await turn(gate, f"f-{number}", number / 10) for number in range(5)]
                assert (await gate.settle("f-0", timeout=0.5)).timed_out
                assert await gate.flush(0.1) is False
            finally:
                os.kill(pid, signal.SIGCONT)
            assert await gate.drain(PATIENCE_S) == {}
            for number, turn_id in enumerate(frozen):
                found = await gate.settle(f"f-{number}", turn_id, timeout=PATIENCE_S)
                assert tier1(found) == [number / 10]
            assert (gate.counts.sent, gate.counts.dropped, gate.counts.lost) == (12, 0, 0)

    with embedded() as own, pipeline(own, "settle-freeze", tmp_path, **ONE_TIER) as running:
        running.start_worker()
        asyncio.run(scene(running, own.pid))
