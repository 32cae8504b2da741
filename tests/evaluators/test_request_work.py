"""Scores are published before they are remembered, both are repeated until they hold, and a stop loses neither."""

import asyncio
import json
from dataclasses import replace

import pytest

from streams.agents.outbox import Outbox
from streams.core.eval_requests import targets
from streams.core.eval_states import StagePosition
from streams.core.model import EvalRequest
from streams.engine import AppendFailed, ChangelogFailed, Revoked
from streams.evaluators import request_work
from streams.evaluators.evaluation import Usage, failed, scored
from streams.evaluators.request_book import SESSION_METRICS, RequestBook
from streams.evaluators.request_work import Desk, RequestWork
from streams.evaluators.scorer import Scored
from streams.metrics import Metrics
from streams.settings import load
from streams.topics import BY_ROLE, named
from streams.wire import Wire
from tests.evaluators.stored import StoredState

ASKED = EvalRequest("run", "s", "p", "s/t", 2, 1, ("a", "b"), ("coherence", "tool_correctness"), 7)
BATCH = replace(ASKED, run_id="batch", turn_id="", tier=0, part=3, thresholds={"coherence": 0.9})


class Office:
    """A desk whose publisher keeps what it gets, and whose scorer answers when it is let."""

    def __init__(self, **settings):
        self.settings = load(overrides=settings, environ={}).settings
        self.state = StoredState()
        self.published = []
        self.refusals = 0
        self.started = []
        self.let = asyncio.Event()
        self.let.set()
        self.rebuilt = 0
        wire = Wire.of(self.settings)
        outbox = Outbox(wire, named({}), dict.fromkeys(BY_ROLE, 1))
        self.metrics = Metrics()
        self.desk = Desk(self.settings, self, self, outbox, wire, self.metrics.evaluators)
        self.open()

    def open(self):
        self.work = RequestWork(self.desk, self.state, RequestBook(self.state, 1_000), self.failed)

    def failed(self):
        self.rebuilt += 1

    async def publish(self, outs):
        if self.refusals:
            self.refusals -= 1
            raise AppendFailed("away")
        # In the order of the calls, commits among them.
        self.published += [(out.topic, out.value) for out in outs]
        self.state.commits.append([out.topic for out in outs])

    async def score(self, partition, request, trace_id, wanted, budget, done):
        self.started.append((request.run_id, trace_id))
        await self.let.wait()
        if trace_id == "breaks":
            done(Scored(wanted[0], scored(0.5)))
            raise KeyError("a bug")
        for target in wanted:
            judged = target.metric == "tool_correctness"
            if judged and budget is not None and budget.take():
                done(Scored(target, failed("no more"), refused="max_evals"))
            else:
                done(Scored(target, scored(0.75, usage=Usage(10, 2, 1, 0.5)), int(judged)))

    async def ask(self, *requests):
        fresh, changes = self.work.book.accept(requests, StagePosition(1), 5)
        await self.state.commit(changes)
        self.work.take(sorted(fresh))

    async def until(self, met):
        async with asyncio.timeout(60):
            while not met():  # noqa: ASYNC110 - a poll
                await asyncio.sleep(0.01)

    async def answered(self):
        await self.until(lambda: not self.work.book.open)

    def values(self, role):
        return [json.loads(value) for topic, value in self.published if topic == role]


def trying(test):
    def run():
        async def whole():
            await test()

        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(request_work, "RETRY_S", 0.01)


@trying
async def test_scores_are_acknowledged_before_they_are_remembered():
    office = Office()
    office.refusals = 3
    await office.ask(ASKED)
    await office.answered()
    accepted, scores, word, remembered = office.state.commits
    assert (scores, word) == (["eval-scores"] * 4, ["eval-runs"])
    assert list(accepted) == [b"r/run\0s\x000", b"p/0"]
    assert [(key[:2], value is None) for key, value in remembered.items()] == [(b"d/", False), (b"r/", True)]
    office.work.close()


@trying
async def test_a_score_says_what_it_is():
    office = Office(thresholds={"coherence": 0.8})
    await office.ask(ASKED, BATCH)
    await office.answered()
    found = {(item["eval_run_id"], item["trace_id"], item["name"]): item for item in office.values("eval-scores")}
    assert len(found) == len({item["score_id"] for item in found.values()}) == 8
    one = found["run", "a", "coherence"]
    assert (one["value"], one["status"], one["source"], one["target"]) == ("0.75", "SUCCESS", "AUTOMATED", "TRACE")
    assert json.loads(one["metadata"]) == {"threshold": 0.8, "success": False}
    assert json.loads(found["batch", "a", "coherence"]["metadata"])["threshold"] == 0.9
    assert json.loads(found["run", "a", "tool_correctness"]["metadata"]) == {"threshold": 0.5, "success": True}
    (run,) = office.values("eval-runs")
    assert (run["status"], run["name"], run["total_targets"]) == ("COMPLETED", "tier 2 of turn s/t", 2)
    assert (run["input_tokens"], run["output_tokens"], run["judge_calls"], run["cost"]) == (40, 8, 4, 2.0)
    assert len([topic for topic, _ in office.published if topic == "eval-log"]) == 1
    office.work.close()


@trying
async def test_what_the_metrics_show_is_what_was_remembered():
    office = Office()
    await office.ask(ASKED)
    await office.answered()
    value = office.metrics.registry.get_sample_value
    labels = {"metric": "coherence", "status": "SUCCESS"}
    await office.until(lambda: value("tgate_eval_scores_total", labels) == 2)
    assert value("tgate_eval_open_requests", {"partition": "0"}) == 0
    assert value("tgate_eval_tokens_total", {"direction": "input"}) == 40
    assert value("tgate_eval_cost_total") == 2.0
    office.work.close()
    assert value("tgate_eval_open_requests", {"partition": "0"}) is None


@trying
async def test_a_bug_is_a_failed_score_and_no_request_without_end():
    office = Office()
    await office.ask(replace(ASKED, trace_ids=("breaks",)))
    await office.answered()
    found = {item["name"]: item for item in office.values("eval-scores")}
    assert found["coherence"]["status"] == "SUCCESS"
    assert found["tool_correctness"]["reason"] == "evaluators broke: KeyError: 'a bug'"
    office.work.close()


@pytest.mark.parametrize(("error", "rebuilt"), [(ChangelogFailed("unknown"), 1), (Revoked("gone"), 0)])
def test_what_cannot_be_remembered_is_built_again_unless_another_owns_it(error, rebuilt):
    async def whole():
        office = Office()

        async def refuse(changes):
            raise error

        await office.ask(ASKED)
        office.state.commit = refuse
        await office.until(office.work._writer.done)
        assert office.rebuilt == rebuilt
        assert len(office.values("eval-scores")) == 4
        office.work.close()

    asyncio.run(whole())


@trying
async def test_the_next_owner_does_what_is_missing_and_no_more():
    office = Office()
    office.let.clear()
    await office.ask(ASKED)
    await office.until(lambda: len(office.started) == 2)
    office.work.close()
    office.open()
    office.let.set()
    office.work.take(office.work.book.open)
    await office.answered()
    assert len(office.values("eval-scores")) == 4
    office.work.close()


@trying
async def test_a_stop_finishes_what_is_under_way_and_starts_nothing_more():
    office = Office()
    office.let.clear()
    await office.ask(ASKED)
    await office.until(lambda: len(office.started) == 2)
    draining = asyncio.ensure_future(office.work.drain())
    await asyncio.sleep(0)
    await office.ask(BATCH)
    office.let.set()
    await draining
    assert [list(key) for key in office.work.book.open] == [["batch", "s", 3]]
    assert {name for name, _ in office.started} == {"run"}
    office.work.close()


@trying
async def test_so_many_requests_run_at_once_the_ladders_first():
    office = Office()
    office.let.clear()
    many = [replace(BATCH, part=number, trace_ids=("a",)) for number in range(request_work.MAX_RUNNING + 2)]
    await office.ask(*many)
    await office.until(lambda: len(office.started) == request_work.MAX_RUNNING)
    await office.ask(replace(ASKED, trace_ids=("a",)))
    office.let.set()
    await office.answered()
    assert office.started[request_work.MAX_RUNNING] == ("run", "a")
    assert len(office.started) == len(many) + 1
    office.work.close()


@trying
async def test_a_limit_is_journaled_once_and_spending_outlives_the_owner():
    office = Office(max_evals=3)
    await office.ask(ASKED)
    await office.answered()
    office.work.close()
    office.open()
    await office.ask(replace(ASKED, run_id="second"))
    await office.answered()
    assert [item["status"] for item in office.values("eval-scores")].count("FAILED") == 1
    (entry,) = office.values("journal")
    assert (entry["kind"], entry["reason"], entry["session_id"]) == ("skip", "max_evals", "s")
    assert office.work.book.spending("s").evals == 3
    office.work.close()


@trying
async def test_a_run_of_its_own_has_a_share_of_its_own():
    """What a part may cost is the run's affair, not the session's."""
    office = Office(max_evals=1)
    await office.ask(
        replace(BATCH, max_evals=2), replace(BATCH, part=4, max_evals=1), replace(BATCH, part=5, max_evals=-1)
    )
    await office.answered()
    states = [item["status"] for item in office.values("eval-scores") if item["name"] == "tool_correctness"]
    assert sorted(states) == ["FAILED"] * 3 + ["SUCCESS"] * 3
    assert office.work.book.spending("s") is None
    office.work.close()


def test_numbers_of_targets_are_those_of_the_book():
    assert [target.number for target in targets(ASKED, SESSION_METRICS)] == [1, 2, 4, 5]
