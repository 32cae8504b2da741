"""Rules as a value, and what a session does at the record that switches them."""

import pytest

from streams.core.model import EvalRequest, ScoreStatus
from streams.core.rules import Rules, seconds
from tests.core.scenario import Story, brief, found, of

QUIET_A = [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]


def test_equal_rules_have_equal_hashes_whatever_the_order():
    one = Rules(thresholds={"a": 0.1, "b": 0.2})
    two = Rules(thresholds={"b": 0.2, "a": 0.1})
    assert one.hash == two.hash
    assert len(one.hash) == 16


def test_every_setting_counts_in_the_hash():
    assert Rules(score_wait_s=3).hash != Rules().hash


def test_rules_survive_their_text():
    rules = Rules(tier1_metrics=("x",), thresholds={"x": 0.25}, observe_only=True)
    assert Rules.from_text(rules.text) == rules
    assert Rules.from_text(rules.text).hash == rules.hash


def test_rules_with_a_setting_from_the_future_are_refused():
    with pytest.raises(ValueError, match="unknown a_new_one, b_new_one"):
        Rules.from_text('{"b_new_one": 1, "a_new_one": 2}')


def test_rules_from_before_a_setting_get_its_default():
    assert Rules.from_text("{}") == Rules()


def test_a_metric_in_two_tiers_counts_in_the_lower():
    rules = Rules(tier1_metrics=("x",), tier2_metrics=("x", "y"), tier3_metrics=("y",))
    assert rules.tiers == {"outcome_correct": 0, "x": 1, "y": 2}


def test_seconds_are_whole_milliseconds():
    assert (seconds(0.0005), seconds(1.2344), seconds(15)) == (0, 1234, 15000)


def test_the_hash_in_force_stands_in_reports():
    story = Story()
    story.turn("a", 0.6, at=0)
    story.switch(gate_window=3)
    story.turn("b", 0.6, at=1)
    assert [report.rules_hash for report in story.reports] == [Rules().hash, Rules(gate_window=3).hash]


def test_completeness_is_checked_again_at_the_switch():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    assert brief(story.switch(tier1_metrics=("task_completion",))) == QUIET_A


def test_an_open_turn_follows_the_rules_in_force():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    story.switch(tier1_metrics=("task_completion", "coherence", "style"))
    assert story.score("coherence", 0.9, "a") == ()
    assert brief(story.score("style", 0.9, "a")) == QUIET_A


def test_a_run_of_the_session_lane_is_checked_again():
    story = Story()
    story.score("agent_reliability", 0.9, eval_run_id="r")
    assert brief(story.switch(session_metrics=("agent_reliability",))) == [
        ("report", "r", "quiet"),
        ("settled", "r", "none", "quiet"),
    ]


def test_waits_keep_their_start():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    assert story.switch(1.5, score_wait_s=5) == ()
    assert story.tick(4.999) == ()
    assert brief(story.tick(5)) == QUIET_A


def test_an_idle_turn_keeps_its_start():
    story = Story()
    story.trace("a", 0, ends_turn=False)
    story.tier1("a", 0.6)
    story.switch(100, turn_idle_s=120)
    assert story.tick(119.999) == ()
    assert brief(story.tick(120)) == QUIET_A


def test_a_switch_alone_lets_no_wait_run_out():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    assert story.switch(50, score_wait_s=1) == ()


def test_the_turns_that_may_wait_are_counted_again():
    story = Story()
    for number, trace in enumerate("abc"):
        story.trace(trace, number)
    assert [item[:2] for item in brief(story.switch(max_open_turns=2))][:2] == [
        ("journal", "overflow"),
        ("report", "s/a"),
    ]


def test_switching_evaluators_on_asks_for_what_waits():
    story = Story()
    story.trace("a", 0)
    story.score("coherence", 0.9, "a")
    assert brief(story.switch(request_evals=True)) == [("request", 1, 1, ("a",), ("task_completion",))]


def test_switching_evaluators_off_waits_for_scores_from_elsewhere():
    story = Story(request_evals=True)
    story.trace("a", 0)
    story.score("coherence", 0.9, "a", at=1)
    assert story.switch(1.5) == ()
    assert brief(story.tick(3)) == QUIET_A


def test_a_turn_that_has_reached_tier_2_does_not_go_back_for_a_new_tier_1_metric():
    story = Story(request_evals=True, gate_window=1)
    story.turn("z", 0.3, at=0)
    story.turn("a", 0.3, at=1)
    story.switch(request_evals=True, gate_window=1, tier1_metrics=("task_completion", "coherence", "style"))
    assert not [item for item in of(EvalRequest, story.outputs) if "style" in item.metrics]
    for metric in ("tool_correctness", "argument_correctness"):
        story.score(metric, 0.9, "a")
    shown = {(score.metric, score.status) for score in story.reports[-1].scores}
    assert ("style", ScoreStatus.PENDING) in shown


def test_no_request_is_made_twice_when_a_switch_leads_back_to_a_lower_tier():
    rules = {"request_evals": True, "gate_window": 1, "enable_tier3": True}
    story = Story(**rules)
    story.turn("z", 0.3, at=0)
    story.turn("a", 0.3, at=1)
    story.score("tool_correctness", 0.1, "a")
    story.score("argument_correctness", 0.9, "a")
    story.switch(tier2_metrics=("tool_correctness", "argument_correctness", "style"), **rules)
    story.score("style", 0.9, "a")
    made = [(item.run_id, item.attempt) for item in of(EvalRequest, story.outputs)]
    assert len(made) == len(set(made))


def test_the_gate_is_folded_under_the_rules_in_force_at_the_decision():
    story = Story(gate_window=1)
    story.turn("z", 0.3, at=0)
    assert story.turn("a", 0.3, at=1) == ()
    assert brief(story.switch(gate_window=5)) == QUIET_A
    assert found(story.reports[-1])[0] == ("task_completion", "a", 0.3, ())
