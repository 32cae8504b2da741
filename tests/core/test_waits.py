"""How long a turn waits when scores come from elsewhere; waits run out at ticks only."""

import pytest

from tests.core.scenario import FAILED, PENDING, Story, brief, found, ms


def stalled(**rules) -> Story:
    """Return a session whose next trace without a gain stalls."""
    story = Story(gate_window=1, **rules)
    story.turn("first", 0.3, at=0)
    return story


def test_a_turn_is_decided_at_once_when_all_is_there():
    assert brief(Story().turn("a", 0.6, at=0)) == [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]


def test_a_turn_waits_two_seconds_after_its_latest_score():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a", at=10)
    assert story.tick(11.999) == ()
    assert brief(story.tick(12)) == [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]


def test_a_turn_waits_two_seconds_after_its_closing_when_that_is_later():
    story = Story()
    story.score("task_completion", 0.6, "a", at=0)
    story.trace("a", 10)
    assert story.tick(11.999) == ()
    assert [item[:2] for item in brief(story.tick(12))] == [("report", "s/a"), ("settled", "s/a")]


def test_every_score_starts_the_wait_anew():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a", at=1)
    story.score("other", 0.6, "a", at=2.5)
    assert story.tick(4.499) == ()
    assert story.tick(4.5) != ()


def test_a_turn_without_any_score_waits_fifteen_minutes():
    story = Story()
    story.trace("a", 5)
    assert story.tick(904.999) == ()
    assert brief(story.tick(905)) == [
        ("report", "s/a", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/a", "none", "pending"),
    ]


def test_what_is_missing_is_shown_as_pending():
    story = Story()
    story.trace("a", 0)
    story.score("coherence", None, "a")
    story.tick(2)
    assert [(score.metric, score.status) for score in story.reports[0].scores] == [
        ("task_completion", PENDING),
        ("coherence", FAILED),
    ]


def test_time_passes_at_ticks_only():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    assert story.score("other", 0.6, "a", at=500) == ()
    assert story.tick(2) == ()
    assert story.tick(502) != ()


def test_a_tick_fires_what_was_due_by_its_word_not_by_its_own_time():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    story.now = 100
    assert story.tick(1.5) == ()
    assert brief(story.tick(2))[0] == ("report", "s/a", "quiet")
    assert story.reports[0].decided_at == ms(100)


def test_a_pending_score_resolves_nothing():
    story = Story()
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    assert story.score("coherence", None, "a", status=PENDING) == ()
    assert brief(story.score("coherence", 0.9, "a")) == [
        ("report", "s/a", "quiet"),
        ("settled", "s/a", "none", "quiet"),
    ]


def test_a_fired_gate_waits_for_tier_2():
    story = stalled()
    assert story.turn("a", 0.3, at=10) == ()
    assert story.score("tool_correctness", 0.9, "a", at=11) == ()
    assert brief(story.score("argument_correctness", 0.9, "a", at=11)) == [
        ("report", "s/a", "posted_new"),
        ("candidate", "trend", "stall:task_completion"),
    ]


def test_tier_2_is_waited_for_as_long_again():
    story = stalled()
    story.turn("a", 0.3, at=10)
    assert story.tick(11.999) == ()
    assert brief(story.tick(12)) == [
        ("report", "s/a", "posted_new"),
        ("candidate", "trend", "stall:task_completion"),
    ]
    assert found(story.reports[-1])[2:] == [
        ("tool_correctness", "a", None, ()),
        ("argument_correctness", "a", None, ()),
    ]


def test_tier_2_gets_its_own_wait_after_tier_1_was_given_up():
    story = stalled()
    story.trace("a", 10)
    story.score("task_completion", 0.3, "a")
    assert story.tick(12) == ()
    assert story.tick(13.999) == ()
    assert story.tick(14) != ()


def test_tier_3_is_waited_for_after_tier_2_breached():
    story = stalled(enable_tier3=True)
    story.turn("a", 0.3, at=10)
    story.score("tool_correctness", 0.1, "a", at=11)
    assert story.score("argument_correctness", 0.9, "a", at=11) == ()
    assert story.tick(12.999) == ()
    assert brief(story.tick(13)) == [
        ("report", "s/a", "posted_new"),
        ("candidate", "breach", "breach:tool_correctness", "stall:task_completion"),
    ]


def test_tier_3_is_not_waited_for_when_tier_2_passed_or_was_given_up():
    story = stalled(enable_tier3=True)
    story.turn("a", 0.3, at=10)
    story.score("tool_correctness", 0.9, "a")
    assert brief(story.tick(12))[0] == ("report", "s/a", "posted_new")


def test_tier_2_waits_on_the_last_trace_only():
    story = stalled()
    story.trace("a", 10, ends_turn=False)
    story.trace("b", 11)
    for metric in ("tool_correctness", "argument_correctness"):
        story.score(metric, 0.1, "a")
    story.tier1("a", 0.3)
    assert story.tier1("b", 0.3) == ()
    story.score("tool_correctness", 0.1, "b")
    assert brief(story.score("argument_correctness", 0.9, "b"))[1] == (
        "candidate",
        "breach",
        "breach:tool_correctness",
        "stall:task_completion",
    )


@pytest.mark.parametrize("value", [0.1, 0.9])
def test_upper_tiers_of_a_closed_gate_are_reported_without_conditions(value):
    story = Story(enable_tier3=True)
    story.trace("a", 0)
    story.score("tool_correctness", value, "a")
    story.score("plan_quality", value, "a")
    story.tier1("a", 0.6)
    assert found(story.reports[0])[2:] == [("tool_correctness", "a", value, ()), ("plan_quality", "a", value, ())]
    assert story.reports[0].decision == "quiet"


def test_tier_2_always_waits_for_tier_2_and_judges_it():
    story = Story(tier2_always=True)
    assert story.turn("a", 0.6, at=0) == ()
    story.score("tool_correctness", 0.1, "a")
    assert brief(story.score("argument_correctness", 0.9, "a"))[1] == (
        "candidate",
        "breach",
        "breach:tool_correctness",
    )


def test_tier_2_always_waits_no_less_after_a_turn_without_scores():
    story = Story(tier2_always=True)
    story.trace("a", 0)
    assert story.tick(900) == ()
    assert story.tick(901.999) == ()
    assert brief(story.tick(902))[0] == ("report", "s/a", "pending")


def test_a_turn_behind_another_still_waits_after_its_latest_score():
    story = Story()
    story.trace("a", 0)
    story.trace("b", 0)
    story.score("task_completion", 0.6, "b", at=1)
    assert story.tick(3) == ()
    story.score("other", 0.6, "b", at=899.5)
    assert [item[:2] for item in brief(story.tick(900))] == [
        ("report", "s/a"),
        ("journal", "pending"),
        ("settled", "s/a"),
    ]
    assert brief(story.tick(901.5))[0] == ("report", "s/b", "quiet")


def test_a_score_that_came_while_an_elder_waited_counts():
    story = Story()
    story.trace("a", 0)
    story.trace("b", 0)
    story.score("task_completion", 0.6, "b", at=1)
    story.tick(3)
    story.score("coherence", 0.95, "b", at=4)
    story.tier1("a", 0.5)
    assert found(story.reports[1]) == [("task_completion", "b", 0.6, ()), ("coherence", "b", 0.95, ())]
