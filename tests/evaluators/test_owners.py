"""The owner of an eval-log partition: plans each run once and says once that a monitor is due, whatever goes wrong."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from aiokafka import TopicPartition

from streams.agents.outbox import Outbox
from streams.core.eval_log import EvalEvent, EvalLogFold, EvalLogRecord, EvalPartitionState
from streams.core.model import EvalRequest, ScoreTarget, TraceStatus
from streams.core.monitors import Monitor, MonitorDue, MonitorPaused, MonitorPut
from streams.core.run_targets import TraceFacts
from streams.core.runs import EvalRun, RunBroke, RunCreated, RunPlanned
from streams.engine import AppendFailed, Connection, Out, TooLarge
from streams.evaluators import planner, scheduler
from streams.evaluators.planner import SILENT_DAYS, OwnerDesk, Planner
from streams.evaluators.scheduler import SAY_AGAIN_MS, Scheduler
from streams.reading import Place
from streams.settings import load
from streams.topics import BY_ROLE, EVAL_LOG, EVAL_REQUESTS, EVAL_SCORES, TRACES, named
from streams.wire import Wire

DAY = 86_400_000
NOW = 1_767_603_600_000
WIRE = Wire()
REACH = Connection("127.0.0.1:9")
TRACE_FACTS = tuple(TraceFacts(f"t{number}", "s", "p", number, TraceStatus.COMPLETED) for number in range(20))


class Published:
    """Takes what is published, and breaks as told."""

    def __init__(self) -> None:
        self.outs: list[Out] = []
        self.errors: list[Exception] = []

    async def publish(self, outs: Sequence[Out]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.outs += outs

    def events(self) -> list[EvalEvent]:
        found, self.outs = [out for out in self.outs if out.topic == EVAL_LOG], []
        return [WIRE.read_eval_log_record(out.value, 0, 0).body for out in found]


class Ends:
    async def end_offsets(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 5)


class Scene:
    """One partition of the eval log, its fold, and who owns it."""

    def __init__(self, **overrides: Any) -> None:
        self.published = Published()
        self.fold = EvalLogFold(EvalPartitionState(), {}.get)
        place = Place(REACH, TRACES, (0, 1)), Place(REACH, EVAL_SCORES, (0,))
        outbox: Any = Outbox(WIRE, named({}), dict.fromkeys(BY_ROLE, 1))
        publisher: Any = self.published
        settings = load(overrides=overrides, environ={}).settings
        self.desk = OwnerDesk(settings, {0: self.fold}, publisher, outbox, WIRE, *place)
        ends: Any = Ends()
        self.scheduler, self.planner = Scheduler(self.desk, ends), Planner(self.desk)
        self.offset = 0

    def say(self, *events: EvalEvent) -> None:
        for event in events:
            self.fold.apply(EvalLogRecord(self.offset, NOW, event))
            self.offset += 1

    def schedule(self, now: int) -> list[Any]:
        asyncio.run(self.scheduler.beat(now))
        return self.published.events()

    def plan(self, now: int = NOW) -> list[Any]:
        asyncio.run(self.planner.beat(now))
        return self.published.events()


MONITOR = Monitor("m", "p", "", ScoreTarget.TRACE, ("coherence",), "daily", 1, next_run_at=NOW)
RUN = EvalRun("r", "p", "", ScoreTarget.TRACE, ("coherence", "confidence"), NOW)


def test_a_monitor_is_said_to_be_due_once_and_rescheduled_from_now() -> None:
    scene = Scene()
    scene.say(MonitorPut(MONITOR))
    assert scene.schedule(NOW - 1) == []
    late = NOW + 3 * DAY + 7
    (due,) = scene.schedule(late)
    assert due == MonitorDue("m", NOW, late, late + DAY, (5, 5), changed=True)
    assert scene.schedule(late + 1) == []
    scene.say(due)
    assert scene.schedule(late + DAY - 1) == []
    assert len(scene.schedule(late + DAY)) == 1


def test_what_has_no_effect_is_said_again() -> None:
    scene = Scene()
    scene.say(MonitorPut(MONITOR))
    scene.published.errors = [AppendFailed("away")]
    with pytest.raises(AppendFailed):
        scene.schedule(NOW)
    assert len(scene.schedule(NOW + 1)) == 1
    assert scene.schedule(NOW + SAY_AGAIN_MS) == []
    assert len(scene.schedule(NOW + 1 + SAY_AGAIN_MS)) == 1


def test_a_paused_monitor_is_never_due() -> None:
    scene = Scene()
    scene.say(MonitorPut(MONITOR), MonitorPaused("m"))
    assert scene.schedule(NOW + 9 * DAY) == []


def test_it_is_looked_whether_anything_came_only_where_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def was_ingested(_: Place, __: Wire, project: str, since: object, ends: object) -> bool:
        asked.append((project, since, ends))
        return False

    monkeypatch.setattr(scheduler, "was_ingested", was_ingested)
    scene = Scene()
    scene.say(MonitorPut(MONITOR), MonitorPut(replace(MONITOR, monitor_id="always", only_if_changed=False)))
    first = scene.schedule(NOW)
    assert [due.changed for due in first] == [True, True]
    scene.say(*first)
    second = {due.monitor_id: due.changed for due in scene.schedule(NOW + DAY)}
    assert second == {"m": False, "always": True}
    assert asked == [("p", (5, 5), (5, 5))]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Let the traces topic hold twenty traces; returns up to which offsets it was read."""
    ends: list[tuple[int, ...]] = []

    async def traces_before(_: Place, __: Wire, before: tuple[int, ...]) -> tuple[TraceFacts, ...]:
        ends.append(before)
        return TRACE_FACTS

    monkeypatch.setattr(planner, "traces_before", traces_before)
    return ends


def asked_of(scene: Scene) -> list[EvalRequest]:
    return [WIRE.read(EvalRequest, out.value) for out in scene.published.outs if out.topic == EVAL_REQUESTS]


def test_a_run_is_planned_once_up_to_where_it_was_asked_for(found: list[tuple[int, ...]]) -> None:
    scene = Scene(max_evals=10)
    scene.say(RunCreated(RUN, (7, 9)))
    asyncio.run(scene.planner.beat(NOW))
    asked = asked_of(scene)
    assert [(one.part, len(one.trace_ids), one.max_evals) for one in asked] == [(0, 16, 10), (1, 4, -1)]
    assert scene.published.events() == [RunPlanned("r", 20, 2)]
    assert found == [(7, 9)]
    assert scene.plan() == []
    scene.say(RunPlanned("r", 20, 2))
    assert scene.plan() == []


def test_a_sampling_rate_of_0_reads_nothing(found: list[tuple[int, ...]]) -> None:
    scene = Scene()
    scene.say(RunCreated(replace(RUN, sampling_rate=0.0), (7, 9)))
    assert scene.plan() == [RunPlanned("r", 0, 0)]
    assert found == []


def test_a_broker_that_is_away_is_waited_for(found: list[tuple[int, ...]]) -> None:
    scene = Scene()
    scene.say(RunCreated(RUN, (7, 9)))
    scene.published.errors = [AppendFailed("away")]
    with pytest.raises(AppendFailed):
        scene.plan()
    assert scene.plan() == [RunPlanned("r", 20, 2)]


@pytest.mark.parametrize(
    ("run", "error", "said"),
    [
        (replace(RUN, metrics=("of a newer release",)), None, "there is no metric 'of a newer release'"),
        (RUN, TooLarge("too large"), "it names more traces of one session than a request can hold"),
        (RUN, RuntimeError("a bug"), "RuntimeError('a bug')"),
    ],
)
def test_a_run_that_cannot_be_planned_breaks_and_holds_up_no_other(
    found: list[tuple[int, ...]], run: EvalRun, error: Exception | None, said: str
) -> None:
    scene = Scene()
    scene.say(RunCreated(run, ()), RunCreated(replace(RUN, run_id="next"), ()))
    scene.published.errors = [error] if error else []
    broke, planned = scene.plan()
    assert isinstance(broke, RunBroke)
    assert said in broke.error
    assert planned == RunPlanned("next", 20, 2)
    assert scene.plan() == []


def test_a_run_that_nobody_answers_breaks_at_last(found: list[tuple[int, ...]]) -> None:
    scene = Scene()
    scene.say(RunCreated(RUN, ()), RunPlanned("r", 20, 2))
    assert scene.plan(NOW + SILENT_DAYS * DAY) == []
    assert scene.plan(NOW + SILENT_DAYS * DAY + 1) == [RunBroke("r", "no evaluator has answered for 7 days")]
