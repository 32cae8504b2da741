"""What a score is made from is waited for: until it comes, or until it is known not to."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaConnectionError

from streams.evaluators import lookups
from streams.evaluators.evaluation import Subject
from streams.evaluators.lookups import Absent, Lookups
from streams.evaluators.moves import Moves

DONE = {"COMPLETED"}


class Stage:
    """A stage with a single partition, number 3, that comes up and moves when told."""

    def __init__(self):
        self.folds = {}
        self.moves = Moves()
        self.end = 10
        self.asked = 0

    def move(self, **fold):
        self.folds = {3: SimpleNamespace(**fold)} if fold else {}
        self.moves.tell()

    async def end_of(self, partition):
        assert partition == 3
        self.asked += 1
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def catalog(position, **traces):
    """Return what a catalog shows: traces by id with their status."""

    def subject(session_id, trace_id):
        return Subject({"status": traces[trace_id]}) if session_id == "s" and trace_id in traces else None

    return {"position": position, "subject": subject}


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def run(test, wait_s=0.05):
    async def whole():
        traces, log = Stage(), Stage()
        await test(Lookups(traces, log, traces.end_of, log.end_of, wait_s), traces, log)

    asyncio.run(whole())


def test_what_is_there_is_found_at_once_and_nobody_is_asked():
    async def test(found, traces, log):
        traces.move(**catalog(1, t="COMPLETED"))
        assert (await found.subject(3, "s", "t", DONE)).trace["status"] == "COMPLETED"
        log.move(position=6)
        assert await found.signals(3, 5) is log.folds[3]
        assert traces.asked == log.asked == 0

    run(test)


def test_a_trace_is_waited_for_until_it_comes_as_it_is_wanted():
    async def test(found, traces, _):
        task = asyncio.ensure_future(found.subject(3, "s", "t", DONE))
        await settle()
        for shown in (None, catalog(9), catalog(10, t="RUNNING")):
            traces.move(**shown or {})
            await settle()
            assert not task.done()
        traces.move(**catalog(11, t="COMPLETED"))
        assert (await task).trace["status"] == "COMPLETED"

    run(test, wait_s=60)


def test_a_backlog_is_read_before_a_trace_counts_as_absent():
    async def test(found, traces, _):
        traces.move(**catalog(9))
        task = asyncio.ensure_future(found.subject(3, "s", "t", DONE))
        await asyncio.sleep(0.2)
        assert not task.done()
        traces.move(**catalog(10))
        with pytest.raises(Absent, match="is not among those that evaluators keep"):
            await task
        assert traces.asked == 1

    run(test)


def test_a_trace_that_stays_unfinished_is_told_as_that():
    async def test(found, traces, _):
        traces.move(**catalog(10, t="RUNNING"))
        with pytest.raises(Absent, match=r"the trace is RUNNING, 0.05 s \(eval_trace_wait_s\) after"):
            await found.subject(3, "s", "t", DONE)

    run(test)


def test_a_broker_that_does_not_say_where_the_topic_ends_is_asked_again():
    async def test(found, traces, _):
        traces.end = KafkaConnectionError("away")
        traces.move(**catalog(10))
        task = asyncio.ensure_future(found.subject(3, "s", "t", DONE))
        await settle()
        assert not task.done()
        traces.end = 10
        traces.move(**catalog(10))
        with pytest.raises(Absent):
            await task

    run(test)


def test_a_partition_that_never_comes_up_is_given_up(monkeypatch):
    monkeypatch.setattr(lookups, "ASSIGNED_WITHIN_S", 0.05)

    async def test(found, *_):
        with pytest.raises(Absent, match="has not read partition 3 of the traces topic to its end"):
            await found.subject(3, "s", "t", DONE)
        with pytest.raises(Absent, match="has not read partition 3 of the session log to its end"):
            await found.signals(3, 5)

    run(test)


def test_signals_are_waited_for_until_the_asking_record_is_heard():
    async def test(found, _, log):
        log.move(position=5)
        task = asyncio.ensure_future(found.signals(3, 5))
        await settle()
        assert not task.done()
        log.move(position=6)
        assert (await task).position == 6

    run(test, wait_s=60)


def test_a_run_of_its_own_hears_the_log_to_its_present_end():
    async def test(found, _, log):
        log.move(position=9)
        task = asyncio.ensure_future(found.signals(3, -1))
        await asyncio.sleep(0.2)
        assert not task.done()
        log.move(position=10)
        assert (await task).position == 10

    run(test, wait_s=0)


def test_a_log_that_ends_before_the_asking_record():
    async def test(found, _, log):
        log.move(position=10)
        with pytest.raises(Absent, match="the session log ends before 40"):
            await found.signals(3, 40)

    run(test)
