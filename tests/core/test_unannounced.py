"""Scores of traces that nobody announced, and traces that come after the fact."""

import pytest

from streams.core.model import JournalEntry, TraceStatus
from tests.core.scenario import ANNOTATION, Story, brief, found, journaled, ms, of

QUIET_A = [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]


def evaluated(count: int, **rules) -> Story:
    """Return a session with *count* decided traces, the newest started at *count* seconds."""
    story = Story(**rules)
    for number in range(1, count + 1):
        story.turn(f"t{number}", 0.6, at=number)
    return story


def test_scores_wait_fifteen_seconds_then_stand_for_their_trace():
    story = Story()
    story.tier1("a", 0.6, at=3)
    assert story.tick(17.999) == ()
    assert brief(story.tick(18)) == QUIET_A
    (report,) = story.reports
    assert (report.trace_ids, report.turn_number, report.project) == (("a",), 1, "default")


def test_the_wait_starts_at_the_first_score():
    story = Story()
    story.score("task_completion", 0.6, "a", at=0)
    story.score("coherence", 0.9, "a", at=14)
    assert brief(story.tick(15)) == QUIET_A


def test_what_is_missing_after_standing_is_waited_for():
    story = Story()
    story.score("task_completion", 0.6, "a", at=0)
    assert story.tick(15) == ()
    assert story.tick(16.999) == ()
    assert brief(story.tick(17)) == QUIET_A


def test_without_a_wait_the_first_score_stands_at_once():
    story = Story(unannounced_wait_s=0)
    assert story.score("task_completion", 0.6, "a") == ()
    assert brief(story.score("coherence", 0.9, "a")) == QUIET_A


def test_a_session_that_only_scores_gets_notices():
    story = Story(unannounced_wait_s=0, gate_window=1)
    story.tier1("a", 0.3, at=0)
    story.tier1("b", 0.3, at=1)
    assert brief(story.tick(3)) == [
        ("report", "s/b", "posted_new"),
        ("candidate", "trend", "stall:task_completion"),
    ]


def test_a_trace_announced_in_time_is_no_longer_unannounced():
    story = Story()
    story.tier1("a", 0.6, at=0)
    assert story.trace("a", 5, ends_turn=False) == ()
    assert story.tick(15) == ()
    assert brief(story.trace("b", 16)) == []
    story.tier1("b", 0.7)
    assert [report.trace_ids for report in story.reports] == [("a", "b")]


def test_an_announced_trace_that_runs_is_waited_for():
    story = Story()
    story.trace("a", 0, status=TraceStatus.RUNNING)
    story.tier1("a", 0.6)
    assert story.tick(600) == ()
    assert brief(story.trace("a", 601)) == QUIET_A


def test_a_trace_that_comes_later_is_merged_not_evaluated_again():
    story = Story()
    story.score("task_completion", 0.6, "a", at=0)
    story.tick(15)
    assert story.trace("a", 16, project="shop") == ()
    assert brief(story.tick(17)) == QUIET_A
    assert story.trace("a", 18) == ()
    assert [report.project for report in story.reports] == ["shop"]


def test_a_standing_trace_starts_when_its_first_score_was_created():
    story = Story()
    story.score("coherence", 0.9, "a", at=20, created_at=ms(7))
    story.score("task_completion", 0.9, "a", at=20, created_at=ms(5))
    story.tick(34)
    story.tick(35)
    assert story.state.newest_decided == ms(5)


def test_traces_that_stand_at_one_tick_stand_in_the_order_of_their_starts():
    story = Story()
    story.tier1("b", 0.4, at=2)
    story.score("task_completion", 0.8, "a", at=3, created_at=ms(1))
    story.score("coherence", 0.9, "a", at=3, created_at=ms(1))
    story.tick(18)
    story.tick(20)
    assert [report.trace_ids for report in story.reports] == [("a",), ("b",)]


def test_traces_that_stand_at_one_tick_stand_in_the_order_of_their_starts_whatever_came_last():
    story = Story()
    story.score("task_completion", 0.6, "a", at=1)
    story.tier1("b", 0.7, at=2)
    story.score("coherence", 0.9, "a", at=3, created_at=ms(1))
    story.tick(17)
    assert [report.trace_ids for report in story.reports] == [("a",), ("b",)]


def test_a_standing_trace_is_a_turn_of_its_own_before_the_open_one():
    story = Story()
    story.trace("open", 0, ends_turn=False)
    story.tier1("a", 0.6, at=0)
    assert brief(story.tick(15)) == QUIET_A
    assert [[trace.trace_id for trace in turn.traces] for turn in story.state.turns] == [["open"]]


def test_an_annotation_never_stands_for_a_trace():
    story = Story()
    story.score("coherence", 0.9, "a", at=0, source=ANNOTATION)
    assert brief(story.tick(15)) == [("journal", "late", "trace_never_announced")]
    assert story.state.turns == ()
    story.trace("a", 16)
    assert brief(story.tier1("a", 0.6)) == QUIET_A


def test_an_annotation_counts_when_another_score_stands():
    story = Story()
    story.score("coherence", 0.2, "a", at=0, source=ANNOTATION)
    story.score("task_completion", 0.6, "a", at=0)
    story.tick(15)
    assert found(story.reports[0]) == [("task_completion", "a", 0.6, ()), ("coherence", "a", 0.2, ())]


def test_with_128_evaluated_no_score_stands_in_a_session_that_announces():
    story = evaluated(128)
    story.score("coherence", 0.9, "new", at=200)
    assert brief(story.tick(215)) == [("journal", "late", "trace_never_announced")]


def test_with_127_evaluated_a_score_still_stands():
    story = evaluated(127)
    story.tier1("new", 0.9, at=200)
    assert brief(story.tick(215))[0] == ("report", "s/new", "quiet")


def test_with_128_evaluated_scores_still_stand_in_a_session_that_never_announced():
    story = Story(unannounced_wait_s=0)
    for number in range(130):
        story.tier1(f"t{number}", 0.6, at=number)
    assert len(story.reports) == 130


@pytest.mark.parametrize("started", [128, 1])
def test_with_128_evaluated_a_trace_no_newer_than_the_newest_is_late(started):
    story = evaluated(128)
    outputs = story.trace("new", 300, started=started)
    assert [(entry.kind, entry.reason, entry.trace_id) for entry in of(JournalEntry, outputs)] == [
        ("late_trace", "not_newer_than_decided", "new")
    ]
    assert story.state.turns == ()
    assert journaled(story.score("coherence", 0.9, "new")) == [("late", "turn_decided")]


def test_with_128_evaluated_a_newer_trace_is_evaluated():
    story = evaluated(128)
    assert brief(story.turn("new", 0.6, at=128.001))[0] == ("report", "s/new", "quiet")


def test_with_127_evaluated_an_older_trace_is_out_of_order_but_evaluated():
    story = evaluated(127)
    assert journaled(story.trace("new", 200, started=1)) == [("out_of_order", "started_before_a_closed_turn")]
    assert brief(story.tier1("new", 0.6))[0] == ("report", "s/new", "quiet")


def test_a_trace_announced_before_is_not_unknown_however_late_it_completes():
    story = Story()
    story.trace("long", 0, status=TraceStatus.RUNNING)
    for number in range(1, 129):
        story.turn(f"t{number}", 0.6, at=number)
    assert journaled(story.trace("long", 300, started=0)) == [("out_of_order", "started_before_a_closed_turn")]
    assert brief(story.tier1("long", 0.6))[0] == ("report", "s/long", "quiet")


def test_a_standing_trace_no_newer_than_the_newest_is_late_once_128_are_held():
    story = Story(unannounced_wait_s=0)
    for number in range(1, 129):
        story.tier1(f"t{number}", 0.6, at=number)
    assert journaled(story.score("coherence", 0.9, "old", at=300, created_at=ms(128))) == [
        ("late_trace", "not_newer_than_decided")
    ]


def test_only_the_last_128_are_remembered():
    story = evaluated(129)
    assert len(story.state.evaluated) == 128
    assert story.trace("t2", 300, started=2) == ()
    assert journaled(story.trace("t1", 301, started=1)) == [("late_trace", "not_newer_than_decided")]
