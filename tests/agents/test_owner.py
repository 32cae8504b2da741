"""Ticks: appended only once all that was there when the clock was read has been applied; broker and folds are doubles."""

import asyncio
from collections.abc import Collection
from types import SimpleNamespace

from faust.types import TP

from streams.agents.outbox import Outbox
from streams.agents.owner import Owner
from streams.core.session import Tick
from streams.engine import Appended, Out
from streams.metrics import Metrics
from streams.settings import load
from streams.topics import BY_ROLE, named
from streams.wire import Wire

TRACES, SCORES = "trace-ingested", "eval-scores"
LOG = TP("session-log", 0)


class Scene:
    """One owned partition whose wait has run out, and a broker that is told what it holds."""

    def __init__(self) -> None:
        settings = load(environ={}).settings
        self.wire = Wire.of(settings)
        self.ends: dict[TP, int] = {TP(TRACES, 0): 0, TP(SCORES, 0): 10}
        self.done: dict[TP, int] = {TP(SCORES, 0): 10}
        self.sent: list[Out] = []
        self.fold = SimpleNamespace(position=0, next_due=1)
        outbox = Outbox(self.wire, named({}), dict.fromkeys(BY_ROLE, 1))
        self.owner = Owner(settings, {0: self.fold}, (TRACES, SCORES), self, outbox, self.wire, self, Metrics())
        self.now = 1_000_000

    async def partitions(self, topics: Collection[str]) -> list[TP]:
        return [tp for tp in self.ends if tp.topic in topics]

    async def end_offsets(self, tps: Collection[TP]) -> dict[TP, int]:
        return {tp: 0 if tp == LOG else self.ends[tp] for tp in tps}

    async def committed(self, group: str, tps: Collection[TP]) -> dict[TP, int | None]:
        assert group == "trajectory-gate"
        return {tp: self.done.get(tp) for tp in tps}

    async def publish(self, outs: list[Out]) -> list[Appended]:
        self.sent += outs
        return []

    def beat(self, seconds: float = 1) -> list[Tick]:
        """Let the owner beat once, that much later; return the ticks it has appended."""
        self.now += round(seconds * 1000)
        self.sent.clear()
        asyncio.run(self.owner.beat(self.now))
        bodies = [self.wire.read_log_record(out.value or b"", 0, self.now).body for out in self.sent]
        return [body for body in bodies if isinstance(body, Tick)]


def test_a_tick_says_when_the_clock_was_read_before_all_was_applied() -> None:
    scene = Scene()
    scene.done[TP(SCORES, 0)] = 9
    assert scene.beat() == []
    asked = scene.now
    assert scene.beat() == []
    scene.done[TP(SCORES, 0)] = 10
    assert scene.beat() == [Tick(asked)]


def test_partitions_that_a_topic_is_given_while_the_worker_runs_are_waited_for() -> None:
    scene = Scene()
    assert len(scene.beat()) == 1
    scene.ends[TP(SCORES, 1)] = 5
    assert scene.beat() == []
    asked = scene.now
    scene.done[TP(SCORES, 1)] = 4
    assert scene.beat() == []
    scene.done[TP(SCORES, 1)] = 5
    assert scene.beat() == [Tick(asked)]


def test_a_new_partition_that_nobody_reads_is_left_out_after_a_while_and_named() -> None:
    scene = Scene()
    scene.ends[TP(SCORES, 1)] = 5
    assert scene.beat() == []
    asked = scene.now
    assert scene.beat(30) == []
    assert scene.beat(30) == [Tick(asked, (f"{SCORES}-1",))]


def test_a_topic_that_is_made_again_smaller_holds_up_nothing() -> None:
    """What was waited for will never come: neither its offsets nor its partitions."""
    scene = Scene()
    scene.ends[TP(SCORES, 1)] = scene.ends[TP(SCORES, 0)] = 1000
    assert scene.beat() == []
    asked = scene.now
    del scene.ends[TP(SCORES, 1)]
    scene.ends[TP(SCORES, 0)] = 3
    scene.done = {TP(SCORES, 0): 2}
    assert scene.beat() == []
    scene.done = {TP(SCORES, 0): 3}
    assert scene.beat() == [Tick(asked)]
