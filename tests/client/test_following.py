"""Notices as an agent follows them: from where it asked, each once, also without an event loop."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from streams.broker import RunningBroker
from streams.client import BlockingGate, Gate, SettleState, Since, instruction
from streams.client.adapters.loop import AgentLoop
from streams.wire import Wire
from tests.cli import records
from tests.cli.test_following import frozen
from tests.pipeline.harness import PATIENCE_S, Pipeline, pipeline

ONE_TIER: dict[str, Any] = {"tier1_metrics": "task_completion", "circuit_breaker_max_notices": 0}


async def play(gate: Gate, session: str, *values: float) -> None:
    for value in values:
        async with gate.trace(session) as trace:
            trace.score("task_completion", value)
        await gate.settle(session, timeout=PATIENCE_S)


def test_notices_begin_where_asked_and_come_once(broker: RunningBroker, tmp_path: Path) -> None:
    async def scene(running: Pipeline) -> None:
        async with Gate(running.settings) as gate:
            await play(gate, "before", 0.6, 0.2)
            # The log holds every notice twice, as after a crash.
            running_again = [(record.value, record.key) for record in await running._read("notices")]
            await running._publish([("notices", value, key) for value, key in running_again])
            between = datetime.now(UTC)
            latest = gate.notices()
            async with gate.notices("after") as after:
                await asyncio.sleep(0)
                with suppress(TimeoutError):
                    # Waiting may be broken off and begun again.
                    async with asyncio.timeout(0.3):
                        await anext(after)
                async with latest:
                    await play(gate, "after", 0.6, 0.2)
                    async with asyncio.timeout(PATIENCE_S):
                        assert (await anext(after)).session_id == "after"
                        assert (await anext(latest)).session_id == "after"
            expected: dict[Any, list[str]] = {
                Since.EARLIEST: ["before", "after"],
                between - timedelta(days=1): ["before", "after"],
                datetime.now(UTC) + timedelta(days=1): [],
            }
            for since, sessions in expected.items():
                notices = gate.notices(since=since)
                async with asyncio.timeout(PATIENCE_S):
                    found = [(await anext(notices)).session_id for _ in sessions]
                    await asyncio.sleep(1)
                assert sorted(found) == sorted(sessions)
                assert notices.take() == []

    with pipeline(broker, "following", tmp_path, **ONE_TIER) as running:
        running.start_worker()
        asyncio.run(scene(running))


def test_an_agent_is_told_and_then_told_to_stop(broker: RunningBroker, tmp_path: Path) -> None:
    async def scene(running: Pipeline) -> None:
        async with (
            Gate(running.settings, project="team") as gate,
            AgentLoop(gate, "a") as loop,
            gate.needs_human("team") as calls,
            gate.notices("a") as mine,
        ):
            told: list[str] = []
            for value in (0.6, 0.2, 0.6, 0.2):
                async with loop.turn() as trace:
                    trace.score("task_completion", value, reason="as scripted")
                found = await gate.settle("a", timeout=PATIENCE_S)
            assert found.outcome == "needs_human"
            async with asyncio.timeout(PATIENCE_S):
                call, notice = await anext(calls), await anext(mine)
                while len(told) < 2:
                    told += loop.take()
                    await asyncio.sleep(0.1)
            assert sorted(told) == sorted([instruction(notice), instruction(call)])
            assert loop.stopped

    with pipeline(broker, "told", tmp_path, **{**ONE_TIER, "circuit_breaker_max_notices": 1}) as running:
        running.start_worker()
        asyncio.run(scene(running))


def test_the_same_without_an_event_loop(broker: RunningBroker, tmp_path: Path) -> None:
    with pipeline(broker, "blocking", tmp_path, **ONE_TIER) as running:
        running.start_worker()
        with BlockingGate(running.settings) as gate, gate.notices("b") as notices:
            for value in (0.6, 0.2):
                with gate.trace("b") as trace, trace.span("look", "TOOL") as span:
                    span.output = value
                assert gate.submit_score("b", "task_completion", value, trace.trace_id)
                found = gate.settle("b", timeout=PATIENCE_S)
                assert (found.state, found.turn_id) == (SettleState.LANDED, trace.turn_id)
            assert next(notices).turn_id == trace.turn_id
            assert notices.take() == []
            assert gate.drain() == gate.pending_sessions() == {}
            assert gate.flush()
            assert gate.counts.sent == 4


def test_a_subscription_knows_that_its_broker_is_away(broker: RunningBroker, tmp_path: Path) -> None:
    async def scene(running: Pipeline) -> None:
        async with Gate(running.settings) as gate, gate.notices() as notices:
            async with asyncio.timeout(PATIENCE_S):
                await running._publish([("notices", Wire("json").write(records.notice()), b"s1")])
                await anext(notices)
                with frozen(broker):
                    while notices.trouble is None:  # noqa: ASYNC110  (a poll with a generous deadline)
                        await asyncio.sleep(0.1)
                assert notices.trouble == "the broker does not answer"
                while notices.trouble is not None:  # noqa: ASYNC110  (as above)
                    await asyncio.sleep(0.1)

    with pipeline(broker, "frozen", tmp_path) as running:
        asyncio.run(scene(running))
