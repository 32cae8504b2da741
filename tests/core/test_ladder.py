"""What the tiers say about a turn, and how severe it is."""

import pytest

from streams.core.model import Candidate, GateSnapshot, Severity
from tests.core.scenario import PENDING, Story, brief, found, of

TIER2 = ("tool_correctness", "argument_correctness")


def stalled(**rules) -> Story:
    """Return a session whose next trace without a gain stalls."""
    story = Story(gate_window=1, **rules)
    story.turn("first", 0.3, at=0)
    return story


def notice(story: Story):
    """Return the only notice of the story."""
    (candidate,) = of(Candidate, story.outputs)
    return candidate.notice


def test_a_bad_outcome_of_a_trace_is_a_breach():
    story = Story()
    story.trace("a", 0)
    story.score("outcome_correct", 0.89, "a")
    assert brief(story.tier1("a", 0.6)) == [
        ("report", "s/a", "posted_new"),
        ("candidate", "breach", "breach:outcome_correct"),
    ]
    assert [(item.tier, item.trace_id, item.threshold) for item in notice(story).scores] == [(0, "a", 0.9)]
    assert notice(story).flagged_traces == ("a",)


def test_a_good_outcome_is_none():
    story = Story()
    story.trace("a", 0)
    story.score("outcome_correct", 0.9, "a")
    assert brief(story.tier1("a", 0.6))[0] == ("report", "s/a", "quiet")


def test_an_outcome_without_trace_joins_the_oldest_undecided_turn():
    story = Story()
    story.trace("a", 0)
    story.trace("b", 1)
    story.score("outcome_correct", 0.0)
    story.tier1("b", 0.6)
    story.tier1("a", 0.5)
    assert [report.signatures for report in story.reports] == [("breach:outcome_correct",), ()]
    assert found(story.reports[0])[-1] == ("outcome_correct", None, 0.0, ("breach",))
    assert notice(story).flagged_traces == ()


def test_an_outcome_without_trace_joins_an_open_turn():
    story = Story()
    story.trace("a", 0, ends_turn=False)
    assert story.score("outcome_correct", 0.0) == ()
    story.tier1("a", 0.6)
    assert brief(story.tick(300))[1] == ("candidate", "breach", "breach:outcome_correct")


def test_an_outcome_with_no_turn_undecided_makes_a_report_of_its_own():
    story = Story()
    story.turn("a", 0.6, at=0)
    outputs = story.score("outcome_correct", 0.0, score_id="o1", at=5)
    assert brief(outputs) == [("report", "s/o1", "posted_new"), ("candidate", "breach", "breach:outcome_correct")]
    assert (story.reports[-1].trace_ids, story.reports[-1].turn_number) == ((), 0)
    assert brief(story.score("outcome_correct", 1.0, score_id="o2")) == [
        ("report", "s/o2", "recovered"),
        ("journal", "recovery", "recovered"),
        ("settled", "s/o2", "none", "recovered"),
    ]


def test_the_same_outcome_sent_twice_makes_one_report():
    story = Story()
    story.score("outcome_correct", 0.0, score_id="o1")
    assert story.score("outcome_correct", 0.0, score_id="o1") == ()


def test_an_outcome_of_its_own_that_is_pending_says_nothing_yet():
    story = Story()
    assert story.score("outcome_correct", None, status=PENDING) == ()
    assert brief(story.score("outcome_correct", None, score_id="o")) == [
        ("report", "s/o", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/o", "none", "pending"),
    ]


def test_tier_1_never_breaches_on_its_value():
    story = Story()
    assert brief(story.turn("a", 0.0, 0.0, at=0))[0] == ("report", "s/a", "quiet")


@pytest.mark.parametrize("tier2", [0.9, None])
def test_what_tier_2_does_not_confirm_is_a_trend(tier2):
    story = stalled()
    story.turn("a", 0.1, at=1)
    for metric in TIER2:
        story.score(metric, tier2, "a")
    assert notice(story).severity is Severity.TREND
    assert notice(story).signatures == ("regression:task_completion", "stall:task_completion")


def test_tier_3_explains_but_never_breaches():
    story = stalled(enable_tier3=True)
    story.trace("a", 1)
    for metric in (*TIER2, "plan_adherence", "plan_quality", "step_efficiency"):
        story.score(metric, 0.1, "a", reason=f"bad {metric}")
    story.tier1("a", 0.3)
    assert notice(story).signatures == (
        "breach:argument_correctness",
        "breach:tool_correctness",
        "stall:task_completion",
    )
    assert [(item.metric, item.tier, item.conditions, item.reason) for item in story.reports[-1].scores[4:]] == [
        ("plan_adherence", 3, (), "bad plan_adherence"),
        ("plan_quality", 3, (), "bad plan_quality"),
        ("step_efficiency", 3, (), "bad step_efficiency"),
    ]


def test_a_metric_that_no_tier_names_is_shown_and_never_judged():
    story = Story()
    story.trace("a", 0)
    story.score("politeness", 0.0, "a", threshold=0.9)
    story.tier1("a", 0.6)
    (last,) = (item for item in story.reports[0].scores if item.metric == "politeness")
    assert (last.tier, last.value, last.threshold, last.conditions) == (None, 0.0, 0.9, ())
    assert story.reports[0].decision == "quiet"


def test_tier_2_of_another_trace_than_the_last_is_shown_and_never_judged():
    story = stalled()
    story.trace("a", 1, ends_turn=False)
    story.trace("b", 2)
    story.score("tool_correctness", 0.0, "a")
    for metric in TIER2:
        story.score(metric, 0.9, "b")
    story.tier1("a", 0.3)
    story.tier1("b", 0.3)
    assert found(story.reports[-1])[-1] == ("tool_correctness", "a", 0.0, ())


@pytest.mark.parametrize(
    ("thresholds", "carried", "line"),
    [({}, None, 0.5), ({}, 0.7, 0.7), ({"tool_correctness": 0.3}, 0.7, 0.3), ({"tool_correctness": 0.0}, 0.7, 0.0)],
)
def test_the_threshold_is_the_setting_else_the_scores_own_else_the_default(thresholds, carried, line):
    story = stalled(thresholds=thresholds)
    story.trace("a", 1)
    story.score("tool_correctness", 0.6, "a", threshold=carried)
    story.score("argument_correctness", 0.6, "a")
    story.tier1("a", 0.3)
    score = story.reports[-1].scores[2]
    assert (score.metric, score.threshold) == ("tool_correctness", line)
    assert bool(score.conditions) == (line > 0.6)


def test_the_gate_folds_a_turn_oldest_trace_first_and_shows_its_way():
    story = Story(gate_window=2, tier1_metrics=("task_completion",))
    story.trace("a", 0, ends_turn=False)
    story.trace("b", 1, ends_turn=False)
    story.trace("c", 2, ends_turn=False)
    story.trace("d", 3)
    for trace, value in (("d", 0.3), ("b", 0.1), ("a", 0.3), ("c", 0.3)):
        story.score("task_completion", value, trace)
    story.tick(5)
    (report,) = story.reports
    shown = [(item.trace_id, item.conditions, item.peak, item.traces_since_gain) for item in report.scores[:4]]
    assert shown == [
        ("a", (), 0.3, 0),
        ("b", ("regression",), 0.3, 1),
        ("c", (), 0.3, 1),
        ("d", ("stall",), 0.3, 2),
    ]
    assert report.gates == (GateSnapshot("task_completion", None, 0, 0.3, 0),)


def test_the_order_of_metrics_no_tier_names_does_not_depend_on_arrival():
    def scores(*metrics: str) -> list:
        story = Story()
        story.trace("a", 0)
        for metric in metrics:
            story.score(metric, 0.5, "a", score_id=metric, flagged_traces=(metric,))
        story.tier1("a", 0.6)
        return [found(story.reports[0]), story.reports[0].flagged_traces]

    assert scores("x", "y") == scores("y", "x")


def test_no_tier_1_metric_leaves_nothing_to_wait_for():
    story = Story(tier1_metrics=())
    story.score("outcome_correct", 0.1, "a", at=0)
    assert brief(story.trace("a", 1)) == [
        ("report", "s/a", "posted_new"),
        ("candidate", "breach", "breach:outcome_correct"),
    ]
