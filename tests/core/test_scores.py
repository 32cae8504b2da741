"""Which of several scores stands, what resolves a metric, and what comes too late."""

import pytest

from streams.core.model import JournalEntry, ScoreStatus
from tests.core.scenario import ANNOTATION, FAILED, PENDING, Story, brief, found, journaled, of

SUCCESS = ScoreStatus.SUCCESS
SUPERSEDED = [("journal", "superseded", "already_resolved")]


def waiting() -> Story:
    """Return a session with an undecided turn of trace `a`."""
    story = Story()
    story.trace("a", 0)
    return story


def standing(story: Story) -> tuple:
    """Return (value, status) of the coherence score that the turn holds."""
    (score,) = (score for score in story.state.turns[0].traces[0].scores if score.name == "coherence")
    return score.value, score.status


def test_a_success_replaces_a_failure():
    story = waiting()
    story.score("coherence", None, "a")
    assert story.score("coherence", 0.7, "a") == ()
    assert standing(story) == (0.7, SUCCESS)


def test_a_failure_does_not_replace_a_success():
    story = waiting()
    story.score("coherence", 0.7, "a")
    assert brief(story.score("coherence", None, "a")) == SUPERSEDED
    assert standing(story) == (0.7, SUCCESS)


def test_the_first_success_stands():
    story = waiting()
    story.score("coherence", 0.7, "a", score_id="one")
    (entry,) = of(JournalEntry, story.score("coherence", 0.2, "a", score_id="two"))
    assert (entry.kind, entry.reason, entry.trace_id, entry.metric) == (
        "superseded",
        "already_resolved",
        "a",
        "coherence",
    )
    assert entry.detail == "score two came after one"
    assert standing(story) == (0.7, SUCCESS)


def test_the_first_failure_stands_against_another():
    story = waiting()
    story.score("coherence", None, "a")
    assert brief(story.score("coherence", None, "a")) == SUPERSEDED


@pytest.mark.parametrize(("value", "status"), [(0.7, SUCCESS), (None, FAILED), (None, PENDING)])
def test_an_annotation_replaces_anything(value, status):
    story = waiting()
    story.score("coherence", value, "a", status=status)
    assert story.score("coherence", 0.1, "a", source=ANNOTATION) == ()
    assert standing(story) == (0.1, SUCCESS)


def test_an_annotation_replaces_an_annotation():
    story = waiting()
    story.score("coherence", 0.7, "a", source=ANNOTATION)
    story.score("coherence", 0.1, "a", source=ANNOTATION)
    assert standing(story) == (0.1, SUCCESS)


def test_an_annotation_stands_against_what_comes_after():
    story = waiting()
    story.score("coherence", 0.7, "a", source=ANNOTATION)
    assert brief(story.score("coherence", 0.1, "a")) == SUPERSEDED
    assert standing(story) == (0.7, SUCCESS)


@pytest.mark.parametrize(("value", "status"), [(0.7, SUCCESS), (None, FAILED), (None, PENDING)])
def test_anything_replaces_a_pending_score(value, status):
    story = waiting()
    story.score("coherence", None, "a", status=PENDING)
    assert story.score("coherence", value, "a", status=status) == ()
    assert standing(story) == (value, status)


def test_a_pending_score_replaces_nothing_resolved():
    story = waiting()
    story.score("coherence", None, "a")
    assert brief(story.score("coherence", None, "a", status=PENDING)) == SUPERSEDED
    assert standing(story) == (None, FAILED)


def test_the_rules_hold_for_a_score_of_the_whole_turn_too():
    story = waiting()
    story.score("outcome_correct", 1.0)
    assert brief(story.score("outcome_correct", 0.0)) == SUPERSEDED
    assert story.score("outcome_correct", 0.5, source=ANNOTATION) == ()
    assert story.state.turns[0].scores[0].value == 0.5


def test_the_rules_hold_for_a_trace_that_nobody_announced_yet():
    story = Story()
    story.score("coherence", None, "a")
    story.score("coherence", 0.7, "a")
    assert brief(story.score("coherence", 0.1, "a")) == SUPERSEDED
    story.trace("a", 1)
    assert standing(story) == (0.7, SUCCESS)


@pytest.mark.parametrize("status", [FAILED, SUCCESS])
def test_failed_and_categorical_scores_resolve_without_a_value(status):
    story = waiting()
    story.score("task_completion", 0.4, "a")
    outputs = story.score("coherence", None, "a", status=status)
    assert brief(outputs) == [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]
    (report,) = story.reports
    assert found(report) == [("task_completion", "a", 0.4, ()), ("coherence", "a", None, ())]
    assert report.scores[1].status is status
    assert [gate.metric for gate in report.gates] == ["task_completion"]


def test_a_late_score_is_journaled_and_warned_about_once():
    story = Story()
    story.turn("a", 0.6, at=0)
    first = story.score("tool_correctness", 0.1, "a", at=1)
    second = story.score("coherence", 0.1, "a", at=2)
    assert journaled(first + second) == [("late", "turn_decided")] * 2
    assert [(entry.trace_id, entry.metric, entry.detail) for entry in of(JournalEntry, first + second)] == [
        ("a", "tool_correctness", "first late score of this session"),
        ("a", "coherence", ""),
    ]
    assert len(story.reports) == 1


def test_a_late_annotation_changes_nothing():
    story = Story()
    story.turn("a", 0.6, at=0)
    assert journaled(story.score("coherence", 0.1, "a", source=ANNOTATION)) == [("late", "turn_decided")]


def test_a_trace_metric_that_names_no_trace_has_no_place():
    (entry,) = of(JournalEntry, waiting().score("coherence", 0.5))
    assert (entry.kind, entry.reason, entry.metric) == ("unplaced", "trace_metric_without_trace_id", "coherence")


def test_a_trace_holds_32_scores():
    story = waiting()
    for number in range(32):
        assert story.score(f"m{number}", 0.5, "a") == ()
    (entry,) = of(JournalEntry, story.score("coherence", 0.5, "a"))
    assert (entry.kind, entry.reason, entry.trace_id, entry.metric) == ("overflow", "trace_scores", "a", "coherence")
    assert brief(story.score("m0", 0.5, "a", source=ANNOTATION)) == []
    assert len(story.state.turns[0].traces[0].scores) == 32


@pytest.mark.parametrize(("metric", "trace"), [("coherence", "a"), ("outcome_correct", None)])
def test_a_score_that_is_refused_does_not_lengthen_the_wait(metric, trace):
    story = waiting()
    story.score(metric, 1.0, trace, at=0)
    assert brief(story.score(metric, 0.5, trace, at=1)) == SUPERSEDED
    assert story.tick(2) != ()
