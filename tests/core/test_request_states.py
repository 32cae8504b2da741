"""The life of an evaluation request: what it asks for, what a repeat adds, what it costs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.bits import count, has_bit, with_bit
from streams.core.eval_requests import Answer, Target, accepted, answered, over_limit, score_id, spent, targets
from streams.core.eval_states import AnsweredRequest, Spending
from streams.core.model import EvalRequest

SESSION = frozenset({"agent_reliability"})
ASKED = EvalRequest("run", "s", "p", "s/b", 1, 1, ("a", "b"), ("coherence", "agent_reliability", "confidence"), 7)


def test_each_trace_is_asked_about_and_the_session_once():
    assert targets(ASKED, SESSION) == (
        Target(1, "coherence", "a"),
        Target(2, "coherence", "b"),
        Target(3, "agent_reliability", None),
        Target(7, "confidence", "a"),
        Target(8, "confidence", "b"),
    )


def test_a_repeat_is_nothing_new():
    state = accepted(None, ASKED, 5)
    assert (state.request, state.accepted_at, state.answered) == (ASKED, 5, ())
    assert accepted(state, replace(ASKED, attempt=2, metrics=("confidence",)), 9) is None
    assert accepted(AnsweredRequest(ASKED.metrics, 8), replace(ASKED, attempt=3), 9) is None


def test_a_repeat_that_asks_for_more_leaves_the_numbers_of_the_rest_as_they_are():
    state = answered(accepted(None, ASKED, 5), [Answer(8, failed=False)])
    more = accepted(state, replace(ASKED, attempt=2, metrics=("plan_quality", "coherence")), 9)
    assert more.request.metrics == (*ASKED.metrics, "plan_quality")
    assert targets(more.request, SESSION)[:5] == targets(ASKED, SESSION)
    assert more.answered == state.answered
    after = accepted(AnsweredRequest(ASKED.metrics, 8), replace(ASKED, metrics=("coherence", "plan_quality")), 9)
    assert after.request.metrics == ("plan_quality",)


def test_answers_are_counted_once():
    answers = [Answer(1, failed=True, evals=1, input_tokens=10, output_tokens=2, judge_calls=3, cost=0.5)]
    state = answered(accepted(None, ASKED, 5), [*answers, *answers])
    state = answered(state, answers)
    assert count(state.answered) == 1
    assert (state.failed, state.evals, state.input_tokens, state.output_tokens) == (1, 1, 10, 2)
    assert (state.judge_calls, state.cost) == (3, 0.5)


def test_ids_of_scores_follow_from_run_target_and_metric_alone():
    one = score_id(ASKED, Target(1, "coherence", "a"))
    assert one == score_id(
        replace(ASKED, attempt=9, requested_at=1, metrics=("coherence",)), Target(4, "coherence", "a")
    )
    others = [
        score_id(replace(ASKED, run_id="other"), Target(1, "coherence", "a")),
        score_id(ASKED, Target(1, "coherence", "b")),
        score_id(ASKED, Target(1, "confidence", "a")),
        score_id(ASKED, Target(1, "coherence", None)),
    ]
    assert len({one, *others}) == 5
    assert len(one) == 32


@pytest.mark.parametrize(
    ("spending", "limits", "met"),
    [
        ((9, 9), (0, 0), ""),
        ((2, 0), (3, 0), ""),
        ((3, 0), (3, 0), "max_evals"),
        ((0, 99), (0, 100), ""),
        ((0, 100), (0, 100), "max_eval_tokens"),
        ((0, 0), (-1, 0), "max_evals"),
        ((0, 0), (0, -1), "max_eval_tokens"),
    ],
)
def test_a_limit_is_met_when_all_of_it_is_spent(spending, limits, met):
    assert over_limit(*spending, *limits) == met


def test_what_a_session_costs_adds_up():
    answers = [Answer(1, failed=False, evals=1, input_tokens=5, output_tokens=2), Answer(2, failed=True, evals=1)]
    assert spent(spent(None, answers, 3), answers, 4) == Spending(4, 14, 4)


@given(st.lists(st.integers(0, 500)))
def test_bits_are_a_set_of_numbers(numbers):
    words = ()
    for number in numbers:
        assert (with_bit(words, number) is words) == has_bit(words, number)
        words = with_bit(words, number)
    assert [number for number in range(501) if has_bit(words, number)] == sorted(set(numbers))
    assert count(words) == len(set(numbers))
    assert all(0 <= word < 2**63 for word in words)
