"""What evaluators are asked, how often, and what follows when they stay silent."""

from streams.core.model import EvalRequest
from tests.core.scenario import Story, brief, found, of

TIER1 = ("task_completion", "coherence")
TIER2 = ("tool_correctness", "argument_correctness")
TIER3 = ("plan_adherence", "plan_quality", "step_efficiency")


def asking(**rules) -> Story:
    return Story(request_evals=True, gate_window=1, **rules)


def stalled(**rules) -> Story:
    """Return a session whose next trace without a gain stalls."""
    story = asking(**rules)
    story.turn("first", 0.3, at=0)
    return story


def test_a_closed_turn_asks_for_tier_1_of_every_trace_at_once():
    story = asking()
    story.trace("a", 0, ends_turn=False)
    outputs = story.trace("b", 1)
    assert brief(outputs) == [("request", 1, 1, ("a", "b"), TIER1)]


def test_an_open_turn_asks_for_nothing():
    assert asking().trace("a", 0, ends_turn=False) == ()


def test_only_what_is_missing_is_asked_for():
    story = asking()
    story.score("coherence", 0.9, "a", at=0)
    assert brief(story.trace("a", 1)) == [("request", 1, 1, ("a",), ("task_completion",))]


def test_nothing_is_asked_for_when_all_is_there():
    story = asking()
    story.tier1("a", 0.6, at=0)
    assert brief(story.trace("a", 1)) == [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]


def test_turns_that_wait_for_an_elder_ask_all_the_same():
    story = asking()
    assert brief(story.trace("a", 0) + story.trace("b", 1)) == [
        ("request", 1, 1, ("a",), TIER1),
        ("request", 1, 1, ("b",), TIER1),
    ]


def test_silence_is_asked_again_and_given_up_in_the_end():
    story = asking()
    story.trace("a", 0)
    assert story.tick(20.999) == ()
    assert brief(story.tick(21)) == [("request", 1, 2, ("a",), TIER1)]
    assert story.tick(42.999) == ()
    assert brief(story.tick(43)) == [("request", 1, 3, ("a",), TIER1)]
    assert story.tick(62.999) == ()
    assert brief(story.tick(63)) == [
        ("report", "s/a", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/a", "none", "pending"),
    ]


def test_a_repeat_asks_only_for_what_is_still_missing():
    story = asking()
    story.trace("a", 0)
    story.score("coherence", 0.9, "a", at=1)
    assert brief(story.tick(21)) == [("request", 1, 2, ("a",), ("task_completion",))]


def test_a_failure_is_an_answer():
    story = asking()
    story.trace("a", 0)
    story.score("coherence", None, "a", at=1)
    assert brief(story.score("task_completion", None, "a", at=2)) == [
        ("report", "s/a", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/a", "none", "pending"),
    ]


def test_one_attempt_is_no_repeat():
    story = asking(eval_retry_attempts=1)
    story.trace("a", 0)
    assert story.tick(19.999) == ()
    assert brief(story.tick(20))[0] == ("report", "s/a", "pending")


def test_the_deadline_starts_when_a_repeat_is_made_not_when_it_was_due():
    story = asking()
    story.trace("a", 0)
    story.tick(30)
    assert story.tick(51.999) == ()
    assert brief(story.tick(52)) == [("request", 1, 3, ("a",), TIER1)]


def test_scores_do_not_lengthen_the_wait_for_the_others():
    story = asking(eval_retry_attempts=1)
    story.trace("a", 0)
    story.score("coherence", 0.9, "a", at=19)
    assert brief(story.tick(20))[0] == ("report", "s/a", "quiet")


def test_a_fired_gate_asks_for_tier_2_of_the_last_trace():
    story = stalled()
    story.trace("a", 1, ends_turn=False)
    story.trace("b", 2)
    story.tier1("a", 0.3)
    assert brief(story.tier1("b", 0.3)) == [("request", 2, 1, ("b",), TIER2)]


def test_a_gate_that_stays_closed_asks_for_no_more():
    story = asking()
    story.trace("a", 0)
    assert brief(story.tier1("a", 0.3)) == [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]


def test_a_breach_of_tier_2_asks_for_tier_3():
    story = stalled(enable_tier3=True)
    story.turn("a", 0.3, at=1)
    story.score("tool_correctness", 0.1, "a")
    assert brief(story.score("argument_correctness", 0.9, "a")) == [("request", 3, 1, ("a",), TIER3)]
    story.score("plan_adherence", 0.1, "a")
    story.score("plan_quality", 0.1, "a")
    assert brief(story.score("step_efficiency", 0.1, "a")) == [
        ("report", "s/a", "posted_new"),
        ("candidate", "breach", "breach:tool_correctness", "stall:task_completion"),
    ]


def test_tier_3_is_not_asked_for_unless_enabled_and_breached():
    story = stalled(enable_tier3=True)
    story.turn("a", 0.3, at=1)
    story.score("tool_correctness", 0.5, "a")
    assert brief(story.score("argument_correctness", 0.9, "a"))[0] == ("report", "s/a", "posted_new")


def test_a_silent_tier_2_is_asked_again_then_the_turn_goes_on_without():
    story = stalled(eval_retry_attempts=2)
    story.turn("a", 0.3, at=1)
    assert brief(story.tick(22)) == [("request", 2, 2, ("a",), TIER2)]
    assert story.tick(41.999) == ()
    assert brief(story.tick(42)) == [
        ("report", "s/a", "posted_new"),
        ("candidate", "trend", "stall:task_completion"),
    ]
    assert found(story.reports[-1])[2:] == [(metric, "a", None, ()) for metric in TIER2]


def test_a_run_is_one_per_turn_and_tier_and_the_attempt_stands_apart():
    story = stalled()
    story.turn("a", 0.3, at=1)
    story.tick(22)
    requests = of(EvalRequest, story.outputs)
    assert [(item.turn_id, item.tier, item.attempt) for item in requests] == [
        ("s/first", 1, 1),
        ("s/a", 1, 1),
        ("s/a", 2, 1),
        ("s/a", 2, 2),
    ]
    assert len({item.run_id for item in requests}) == 3
    assert requests[2].run_id == requests[3].run_id == "83fa8cac4029df0b444b5e433b66435e"


def test_run_ids_do_not_depend_on_values_settings_or_time():
    def runs(first: float, start: float, **rules) -> list[str]:
        story = asking(**rules)
        story.turn("first", first, at=start)
        story.turn("a", first, at=start + 1)
        return [item.run_id for item in of(EvalRequest, story.outputs)]

    assert runs(0.3, 0) == runs(0.2, 500, eval_deadline_s=3, tier2_metrics=("other",), gate_drop=0.9)


def test_session_metrics_are_asked_for_at_the_end_of_each_turn_where_that_is_set():
    story = Story(session_metrics_each_turn=True, session_metrics=("agent_reliability", "mine"))
    story.trace("a", 0)
    report, settled, asked = brief(story.tier1("a", 0.6))
    assert (report[0], settled[0]) == ("report", "settled")
    assert asked == ("request", 0, 1, (), ("agent_reliability", "mine"))
    (request,) = of(EvalRequest, story.outputs)
    assert (request.turn_id, request.log_offset, request.part) == ("s/a", 2, 0)
    assert story.tick(1000) == ()


def test_session_metrics_are_not_asked_for_otherwise():
    assert not of(EvalRequest, Story(session_metrics_each_turn=True, session_metrics=()).turn("a", 0.6, at=0))
    assert not of(EvalRequest, Story().turn("a", 0.6, at=0))


def test_a_turn_that_is_skipped_asks_for_no_session_metrics():
    story = Story(session_metrics_each_turn=True, eval_sample_every=2)
    story.turn("a", 0.6, at=0)
    story.turn("b", 0.6, at=1)
    assert [request.turn_id for request in of(EvalRequest, story.outputs)] == ["s/a"]


def test_requests_say_where_in_the_log_they_were_made():
    story = stalled()
    story.turn("a", 0.3, at=1)
    assert [item.log_offset for item in of(EvalRequest, story.outputs)] == [0, 3, 5]
