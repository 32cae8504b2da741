"""What the monitor makes of looks: gauges, log lines, readiness, and the end of a worker; clock, loop and broker are doubles."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from faust.types import TP
from structlog.testing import capture_logs

from streams.engine import Read, Reading, Stage, Standing
from streams.health.health import LoopPulse
from streams.health.monitor import Monitor
from streams.metrics import STAGES, Metrics

INPUT, LOG, CANDIDATES = TP("scores", 0), TP("log", 0), TP("candidates", 0)


async def _nothing(_: Any) -> None: ...


STAGE_LIST = [
    Stage("ingest", ("scores",), _nothing, Reading(by_time=True)),
    Stage("session", ("log",), _nothing),
    Stage("breaker", ("candidates",), _nothing),
]


@dataclass
class Broker:
    """Says where partitions end, unless it is away."""

    ends: dict[TP, int] = field(default_factory=lambda: {INPUT: 0, LOG: 0, CANDIDATES: 0})
    is_away: bool = False

    async def end_offsets(self, tps: Collection[TP]) -> Mapping[TP, int]:
        if self.is_away:
            raise KafkaConnectionError("nobody there")
        return {tp: self.ends.get(tp, 0) for tp in tps}


@dataclass
class Loop:
    """A worker's event loop that turns, unless it is told to hang."""

    standing: Standing
    hangs: bool = False
    asked: int = 0
    answered: int = 0

    def ask(self) -> None:
        self.asked += self.asked == self.answered
        if not self.hangs:
            self.answered = self.asked


class Scene:
    """A monitor and what it looks at; looks are five seconds apart."""

    def __init__(self, *, exit_s: float = 300.0) -> None:
        self.broker, self.metrics, self.ended = Broker(), Metrics(), 0
        self.loop = Loop(self.at(0, 0, 0))
        limits = (30.0, exit_s)
        self.monitor = Monitor(STAGE_LIST, self.loop, self.broker, self.metrics, limits, self._end)
        self.now = 1000.0

    @staticmethod
    def at(*positions: int, settled: bool = True) -> Standing:
        tps = (INPUT, LOG, CANDIDATES)
        read = {tp: Read(position, is_out=False) for tp, position in zip(tps, positions, strict=False)}
        return Standing(settled, frozenset(tps), read)

    def _end(self) -> None:
        self.ended += 1

    def look(self, times: int = 1) -> list[str]:
        """Look; return the events that were logged."""

        async def look() -> None:
            for _ in range(times):
                self.now += 5
                await self.monitor.look(self.now)

        with capture_logs() as logs:
            asyncio.run(look())
        return [line["event"] for line in logs]

    def gauge(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


def test_all_is_well() -> None:
    scene = Scene()
    assert scene.look(100) == []
    status = scene.monitor.status()
    assert (status.live, status.ready, status.broker_away, status.stalled, status.recovering) == (
        True,
        True,
        False,
        (),
        (),
    )
    assert [(item.stage, item.position, item.lag) for item in status.partitions] == [
        ("breaker", 0, 0),
        ("ingest", 0, 0),
        ("session", 0, 0),
    ]
    for stage in STAGES:
        assert scene.gauge("tgate_partitions_owned", stage=stage) == 1


def test_before_anything_is_known_it_is_neither() -> None:
    status = Scene().monitor.status()
    assert (status.live, status.ready) == (False, False)


def test_a_stalled_partition_is_said_once_shown_and_ends_the_worker() -> None:
    scene = Scene()
    scene.broker.ends[LOG] = 3
    assert scene.look(59) == ["stalled"]
    status = scene.monitor.status()
    assert (status.live, status.ready, status.stalled) == (True, False, ("log-0",))
    place = {"stage": "session", "topic": "log", "partition": "0"}
    assert scene.gauge("tgate_partition_stalled", **place) == 1
    assert scene.gauge("tgate_lag_records", **place) == 3
    assert scene.gauge("tgate_position_offset", **place) == 0
    assert scene.ended == 0
    assert scene.look(2) == ["ending"]
    assert scene.ended == 1
    scene.loop.standing = scene.at(0, 3, 0)
    assert scene.look() == ["moves_again"]
    assert scene.monitor.status().ready


def test_a_broker_that_is_away_is_no_stall() -> None:
    scene = Scene()
    scene.broker.ends[LOG] = 3
    scene.look()
    scene.broker.is_away = True
    assert scene.look(1000) == ["broker_away"]
    assert (scene.monitor.status().ready, scene.monitor.status().live) == (False, True)
    assert scene.gauge("tgate_broker_away") == 1
    scene.broker.is_away = False
    assert scene.look(5) == ["broker_back"]
    assert scene.gauge("tgate_broker_away") == 0
    assert scene.ended == 0
    assert scene.look(2) == ["stalled"]


def test_a_broker_that_is_not_asked_is_not_back() -> None:
    """A worker that stops while the broker is away has no partitions left to ask about."""
    scene = Scene()
    scene.broker.is_away = True
    assert scene.look() == ["broker_away"]
    scene.loop.standing = Standing()
    assert scene.look(10) == []
    assert scene.monitor.status().broker_away


def test_a_loop_that_hangs_is_not_live_and_ends_the_worker_broker_or_not() -> None:
    scene = Scene()
    scene.look()
    scene.broker.is_away = scene.loop.hangs = True
    assert scene.look(8) == ["broker_away", "loop_blocked"]
    assert not scene.monitor.status().live
    assert scene.monitor.status().loop_blocked_s >= 30
    assert (scene.gauge("tgate_loop_blocked_seconds") or 0) >= 30
    assert scene.look(60)[-1] == "ending"
    assert scene.ended


def test_a_loop_that_turns_again_is_live() -> None:
    scene = Scene()
    scene.look()
    scene.loop.hangs = True
    assert scene.look(10) == ["loop_blocked"]
    scene.loop.hangs, scene.loop.answered = False, scene.loop.asked
    assert scene.look() == ["loop_turns_again"]
    assert scene.monitor.status().live


def test_recovering_is_not_ready_and_named() -> None:
    scene = Scene()
    for applied in range(500):
        scene.loop.standing = replace(scene.at(0, 0), restored={CANDIDATES: applied})
        assert scene.look() == []
    status = scene.monitor.status()
    assert (status.live, status.ready, status.recovering) == (True, False, ("candidates-0",))
    assert scene.gauge("tgate_partitions_owned", stage="breaker") == 0
    assert scene.gauge("tgate_partitions_assigned", stage="breaker") == 1
    assert scene.ended == 0, "a recovery that goes on may take longer than any stall"


@pytest.mark.parametrize("restored", [{CANDIDATES: 7}, {}])
def test_a_recovery_that_hangs_is_said_once_shown_and_ends_the_worker(restored: dict[TP, int]) -> None:
    """While its changelog is read, or before that."""
    scene = Scene()
    scene.loop.standing = replace(scene.at(0, 0), restored=restored)
    assert scene.look(60) == ["recovery_stalled"]
    status = scene.monitor.status()
    assert (status.live, status.ready, status.stalled) == (True, False, ("candidates-0",))
    assert scene.gauge("tgate_partition_stalled", stage="breaker", topic="candidates", partition="0") == 1
    assert scene.ended == 0
    assert scene.look() == ["ending"]
    assert scene.ended == 1
    scene.loop.standing = scene.at(0, 0, 0)
    assert scene.look() == ["moves_again"]
    assert scene.monitor.status().ready


def test_a_recovery_waits_for_its_turn_as_long_as_others_move() -> None:
    scene = Scene()
    for applied in range(100):
        scene.loop.standing = replace(scene.at(0), restored={LOG: applied})
        assert scene.look() == []
    assert scene.look(59) == ["recovery_stalled", "recovery_stalled"]


def test_a_recovery_without_a_broker_is_no_stall() -> None:
    scene = Scene()
    scene.loop.standing = scene.at(0, 0)
    scene.broker.is_away = True
    assert scene.look(1000) == ["broker_away"]
    assert scene.ended == 0


def test_no_assignment_yet_is_not_ready_and_none_at_all_is() -> None:
    scene = Scene()
    scene.loop.standing = Standing()
    scene.look()
    assert not scene.monitor.status().ready
    scene.loop.standing = Standing(settled=True)
    scene.look()
    assert scene.monitor.status().ready, "more workers than partitions: this one stands by"


def test_a_partition_that_goes_away_takes_its_series_along() -> None:
    scene = Scene()
    scene.look()
    scene.loop.standing = Standing(settled=True, assigned=frozenset({LOG}), read={LOG: Read(0, is_out=False)})
    scene.look()
    assert scene.gauge("tgate_lag_records", stage="session", topic="log", partition="0") == 0
    assert scene.gauge("tgate_lag_records", stage="ingest", topic="scores", partition="0") is None
    assert scene.gauge("tgate_partitions_owned", stage="ingest") == 0


def test_it_may_be_told_never_to_end_the_worker() -> None:
    scene = Scene(exit_s=0.0)
    scene.broker.ends[LOG] = 3
    assert scene.look(1000) == ["stalled"]
    assert scene.ended == 0


def test_progress_is_told_by_the_clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    monkeypatch.setattr("streams.health.monitor.time.monotonic", lambda: scene.now)
    monkeypatch.setattr("streams.health.monitor.time.time", lambda: 1_767_603_600.0)
    scene.look(3)
    (_, _, session) = scene.monitor.status().partitions
    assert session.last_progress == "2026-01-05T08:59:50.000+00:00"


def test_a_question_is_not_asked_twice() -> None:
    """A loop that hangs must not find a thousand questions when it turns again."""
    with asyncio.Runner() as runner:
        pulse = LoopPulse(runner.get_loop(), lambda: Standing(settled=True))
        for _ in range(3):
            pulse.ask()
        assert (pulse.asked, pulse.answered) == (1, 0)
        runner.run(asyncio.sleep(0))
        assert (pulse.answered, pulse.standing.settled) == (1, True)
        pulse.ask()
        assert pulse.asked == 2
    pulse.ask()
