"""Whole turns against every vector, through `session.step`, in several orders of arrival."""

from random import Random

import pytest

from streams.core.model import Candidate, Decision, EvalRequest, Report
from tests.core.scenario import Story, of
from tests.core.vectors import cases

TIER1 = ("task_completion", "coherence")
CASES = cases("turns")


def scored(turn: dict) -> dict[int, list[tuple]]:
    """Return the turn's scores as (metric, value, trace) by tier; none is a score that failed."""
    last = turn["traces"][-1]["trace_id"]
    outcome = [("outcome_correct", turn["outcome_correct"], None)] if turn["outcome_correct"] is not None else []
    return {
        0: outcome,
        1: [(metric, trace[metric], trace["trace_id"]) for trace in turn["traces"] for metric in TIER1],
        2: [(metric, value, last) for metric, value in turn["tier2"].items()],
        3: [(metric, value, last) for metric, value in turn["tier3"].items()],
    }


def announce(story: Story, turn: dict) -> None:
    for trace in turn["traces"]:
        story.trace(trace["trace_id"], story.now + 1, ends_turn=trace is turn["traces"][-1])


def send(story: Story, scores: list[tuple]) -> None:
    for metric, value, trace in scores:
        story.score(metric, value, trace)


def top_down(story: Story, turn: dict, _: Random) -> None:
    """The last trace's scores and the upper tiers come before tier 1."""
    tiers = scored(turn)
    announce(story, turn)
    send(story, [*tiers[0], *tiers[3], *tiers[2], *reversed(tiers[1])])


def bottom_up(story: Story, turn: dict, _: Random) -> None:
    """Tier by tier, as evaluators would answer; what a closed gate makes needless comes late."""
    tiers = scored(turn)
    announce(story, turn)
    send(story, [*tiers[0], *tiers[1], *tiers[2], *tiers[3]])


def shuffled(story: Story, turn: dict, chance: Random) -> None:
    """Any order in which the last tier-1 score ends the waiting."""
    tiers = scored(turn)
    announce(story, turn)
    chance.shuffle(tiers[1])
    *rest, final = tiers[1]
    others = [*rest, *tiers[0], *tiers[2], *tiers[3]]
    chance.shuffle(others)
    send(story, [*others, final])


def before_traces(story: Story, turn: dict, chance: Random) -> None:
    """Scores overtake the traces they belong to."""
    tiers = scored(turn)
    chance.shuffle(tiers[1])
    *rest, final = tiers[1]
    send(story, [*tiers[3], *rest, *tiers[2]])
    announce(story, turn)
    send(story, [*tiers[0], final])


def silent(story: Story, turn: dict, _: Random) -> None:
    """A score without value never comes; the waits run out."""
    announce(story, turn)
    tiers = scored(turn)
    scores = [item for tier in (0, 3, 2, 1) for item in tiers[tier] if item[1] is not None]
    send(story, scores)
    for _ in range(3):
        story.tick(story.now + 900)


ORDERS = [top_down, bottom_up, shuffled, before_traces, silent]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.__name__)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_turns(number, order):
    case = CASES[number]
    story = Story(**case["params"])
    for turn in case["turns"]:
        done = len(story.outputs)
        order(story, turn, Random(number))
        outputs = story.outputs[done:]
        reports, candidates = of(Report, outputs), of(Candidate, outputs)
        assert [report.trace_ids for report in reports] == [tuple(trace["trace_id"] for trace in turn["traces"])]
        assert (reports[0].decision is Decision.RECOVERED) == turn["expect"]["recovered"]
        assert [as_vector(item.notice) for item in candidates] == [n for n in [turn["expect"]["notice"]] if n]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_turns_with_evaluators_that_answer_each_request(number):
    case = CASES[number]
    story = Story(request_evals=True, **case["params"])
    for turn in case["turns"]:
        done = len(story.outputs)
        tiers = scored(turn)
        *earlier, last = turn["traces"]
        for trace in earlier:
            story.trace(trace["trace_id"], story.now + 1, ends_turn=False)
        requests = of(EvalRequest, story.trace(last["trace_id"], story.now + 1))
        send(story, tiers[0])
        while requests:
            request = requests.pop(0)
            answered = len(story.outputs)
            send(story, [item for item in tiers[request.tier] if item[0] in request.metrics])
            requests += of(EvalRequest, story.outputs[answered:])
        outputs = story.outputs[done:]
        expected = turn["expect"]
        asked = [1] + [2] * expected["tier2_ran"] + [3] * expected["tier3_ran"]
        assert [(item.tier, item.attempt) for item in of(EvalRequest, outputs)] == [(tier, 1) for tier in asked]
        assert [item.decision is Decision.RECOVERED for item in of(Report, outputs)] == [expected["recovered"]]
        assert [as_vector(item.notice) for item in of(Candidate, outputs)] == [n for n in [expected["notice"]] if n]


def as_vector(notice) -> dict:
    return {
        "severity": notice.severity,
        "signatures": list(notice.signatures),
        "flagged_traces": list(notice.flagged_traces),
        "metrics": [
            {
                "name": item.metric,
                "value": item.value,
                "threshold": item.threshold,
                "conditions": list(item.conditions),
                "trace_id": item.trace_id,
                "tier": item.tier,
            }
            for item in notice.scores
        ],
    }
