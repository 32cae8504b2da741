"""Scores come side by side, each with a reason where it has no value; whatever an evaluator does, others go on."""

import asyncio
from types import SimpleNamespace

import pytest

from streams.core.eval_requests import targets
from streams.core.model import EvalRequest
from streams.evaluators.budget import Budget
from streams.evaluators.evaluation import Subject, Usage, scored
from streams.evaluators.lookups import Absent
from streams.evaluators.request_book import SESSION_METRICS
from streams.evaluators.scorer import Scorer
from streams.evaluators.session_metrics import agent_consistency, agent_reliability
from streams.evaluators.session_signals import SessionSignals
from streams.settings import load

SIGNALS = {"a": {"confidence": 0.3}, "b": {"coherence": 0.2, "confidence": 0.9}}


class Asked:
    """Looks up anything, and is an evaluator that answers by metric."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []
        self.running = self.most = 0
        self.statuses = None
        self.log_offset = None

    async def evaluate(self, metric, subject, *, model=None):
        self.asked.append((metric, subject.trace["id"], model))
        answer = self.answers.get(metric, 0.5)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            if callable(answer):
                await answer()
        finally:
            self.running -= 1
        return scored(answer, usage=Usage(10, 5, 1))

    async def subject(self, partition, session_id, trace_id, statuses):
        self.statuses = statuses
        if trace_id.startswith("absent"):
            raise Absent("it is not there")
        return Subject({"id": trace_id})

    async def signals(self, partition, log_offset):
        self.log_offset = log_offset
        if log_offset == 99:
            raise Absent("it was not heard")
        session = SessionSignals()
        for trace_id, values in SIGNALS.items():
            session.put(trace_id, values)
        return SimpleNamespace(session=lambda _: session, traces=lambda _: SIGNALS)


def request(trace_ids, metrics, session="s", turn="s/t", **more):
    return EvalRequest("run", session, "p", turn, 1, 1, tuple(trace_ids), tuple(metrics), 0, **more)


async def results(asked, made, budget=None, **settings):
    scorer = Scorer(asked, asked, load(overrides=settings, environ={}).settings)
    found = []
    by_trace = {}
    for target in targets(made, SESSION_METRICS):
        by_trace.setdefault(target.trace_id, []).append(target)
    calls = (scorer.score(0, made, trace_id, some, budget, found.append) for trace_id, some in by_trace.items())
    await asyncio.gather(*calls)
    return {(item.target.metric, item.target.trace_id): item for item in found}


def run(*arguments, **settings):
    return asyncio.run(results(*arguments, **settings))


def test_each_target_gets_its_verdict():
    asked = Asked(coherence=0.7)
    found = run(asked, request(["a", "b"], ["coherence", "tool_correctness"], model="m"))
    assert {key: item.verdict.value for key, item in found.items()} == {
        ("coherence", "a"): 0.7,
        ("coherence", "b"): 0.7,
        ("tool_correctness", "a"): 0.5,
        ("tool_correctness", "b"): 0.5,
    }
    assert {model for *_, model in asked.asked} == {"m"}
    assert found["coherence", "a"].evals == 0
    assert found["tool_correctness", "a"].evals == 1


def test_the_ladder_wants_traces_that_have_come_so_far_runs_any():
    asked = Asked()
    run(asked, request(["a"], ["coherence"]))
    assert asked.statuses == {"COMPLETED", "ERROR"}
    run(asked, request(["a"], ["coherence"]), evaluated_statuses="COMPLETED,RUNNING")
    assert asked.statuses == {"COMPLETED", "ERROR", "RUNNING"}
    run(asked, request(["a"], ["coherence"], turn=""))
    assert asked.statuses == {"COMPLETED", "ERROR", "RUNNING", "PENDING"}


def test_an_absent_trace_fails_alone():
    found = run(Asked(), request(["absent", "b"], ["coherence"]))
    assert (found["coherence", "absent"].verdict.value, found["coherence", "absent"].verdict.reason) == (
        None,
        "it is not there",
    )
    assert found["coherence", "b"].verdict.value == 0.5


def test_an_evaluator_that_raises_or_hangs_is_a_failed_score():
    async def breaks():
        raise ZeroDivisionError("by zero")

    async def hangs():
        await asyncio.Event().wait()

    asked = Asked(coherence=breaks, tool_correctness=hangs)
    found = run(asked, request(["a"], ["coherence", "tool_correctness", "confidence"]), eval_timeout_s=0.05)
    reasons = {metric: item.verdict.reason for (metric, _), item in found.items()}
    assert reasons["coherence"] == "the evaluator broke: ZeroDivisionError: by zero"
    assert reasons["tool_correctness"] == "no answer within 0.05 s (eval_timeout_s)"
    assert found["confidence", "a"].verdict.value == 0.5


def test_judgements_are_bounded_and_what_needs_no_judge_has_slots_of_its_own():
    asked = Asked()
    made = request([f"t{number}" for number in range(50)], ["tool_correctness"])
    run(asked, made, eval_concurrency=8)
    assert asked.most == 2

    async def whole():
        forever = asyncio.Event()
        stuck = Asked(tool_correctness=forever.wait)
        scorer = Scorer(stuck, stuck, load(overrides={"eval_concurrency": 2}, environ={}).settings)
        hanging = [
            asyncio.ensure_future(scorer.score(0, made, "t", targets(made, ())[:1], None, lambda _: None))
            for made in (request(["t"], ["tool_correctness"], session=f"s{number}") for number in range(5))
        ]
        found = []
        other = request(["t"], ["coherence"], session="other")
        await scorer.score(0, other, "t", targets(other, ()), None, found.append)
        assert [item.verdict.value for item in found] == [0.5]
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)

    asyncio.run(whole())


def test_a_budget_bounds_judgements_only_and_says_so_once():
    asked = Asked()
    made = request(["a", "b"], ["tool_correctness", "coherence", "confidence"])
    found = run(asked, made, Budget("session s", 1, 0, 3, 0))
    failed = [item for item in found.values() if item.verdict.value is None]
    assert len(failed) == 2
    assert {item.verdict.reason for item in failed} == {"max_evals: session s may cost 3 judgements and has had 3"}
    assert sorted(item.refused for item in failed) == ["", "max_evals"]
    assert all(found["coherence", name].verdict.value == 0.5 for name in ("a", "b"))
    assert len(asked.asked) == 4


def test_the_tokens_of_one_judgement_count_before_the_next_starts():
    made = request(["a", "b", "c"], ["tool_correctness"])
    found = run(Asked(), made, Budget("session s", 0, 0, 0, 20), eval_concurrency=1)
    assert [found["tool_correctness", name].verdict.value for name in "abc"] == [0.5, 0.5, None]
    assert found["tool_correctness", "c"].refused == "max_eval_tokens"


def test_tokens_are_a_budget_too():
    budget = Budget("part 1 of run r", 0, 0, 0, 20)
    taken = [budget.take()]
    budget.used(Usage(10, 5))
    taken.append(budget.take())
    budget.used(Usage(10, 5))
    taken.append(budget.take())
    assert taken == ["", "", "max_eval_tokens"]
    assert budget.refusal("max_eval_tokens") == ("max_eval_tokens: part 1 of run r may cost 20 tokens and has had 30")
    assert Budget("part 2 of run r", 0, 0, -1, 0).take() == "max_evals"
    assert (
        Budget("part 2 of run r", 0, 0, -1, 0)
        .refusal("max_evals")
        .startswith("max_evals: part 2 of run r may cost 0 judgements")
    )


@pytest.mark.parametrize("weights", [{}, {"confidence": 0.5}])
def test_session_metrics_are_computed_from_what_was_heard(weights):
    asked = Asked()
    found = run(asked, request([], ["agent_reliability", "agent_consistency"], log_offset=7, signal_weights=weights))
    names = list(SIGNALS)
    assert found["agent_reliability", None].verdict == agent_reliability(names, SIGNALS, weights)
    assert found["agent_consistency", None].verdict == agent_consistency(names, SIGNALS, weights)
    assert (asked.log_offset, asked.asked) == (7, [])


def test_session_metrics_that_cannot_be_computed_fail_with_the_reason():
    found = run(Asked(), request([], ["agent_reliability"], log_offset=99))
    assert found["agent_reliability", None].verdict.reason == "it was not heard"
