"""Which traces make a turn, what closes it, and in which order turns are decided."""

import pytest

from streams.core.model import Candidate, JournalEntry, TraceStatus
from tests.core.scenario import Story, brief, make_trace, ms, of

QUIET = "quiet"


def decided(trace_id: str, decision: str = QUIET) -> list[tuple]:
    """Return what a turn that raised nothing puts out."""
    turn_id = f"s/{trace_id}"
    return [("report", turn_id, decision), ("settled", turn_id, "none", decision)]


def test_a_trace_that_ends_its_turn_closes_it():
    story = Story()
    story.trace("a", 0, ends_turn=False)
    story.tier1("a", 0.6)
    assert story.reports == []
    story.tier1("b", 0.7)
    assert brief(story.trace("b", 5)) == decided("b")
    (report,) = story.reports
    assert report.trace_ids == ("a", "b")
    assert (report.turn_number, report.decided_at) == (1, ms(5))


def test_a_trace_with_another_turn_index_closes_the_turn_and_opens_the_next():
    story = Story()
    story.trace("a", 0, ends_turn=False, turn_index=1)
    story.tier1("a", 0.6)
    assert brief(story.trace("b", 5, ends_turn=False, turn_index=2)) == decided("a")
    assert [[trace.trace_id for trace in turn.traces] for turn in story.state.turns] == [["b"]]


def test_a_trace_with_the_same_turn_index_joins():
    story = Story()
    story.trace("a", 0, ends_turn=False, turn_index=0)
    story.trace("b", 1, ends_turn=False, turn_index=0)
    assert [[trace.trace_id for trace in turn.traces] for turn in story.state.turns] == [["a", "b"]]


def test_a_turn_closes_after_the_idle_time_and_only_at_a_tick():
    story = Story()
    story.trace("a", 0, ends_turn=False)
    story.trace("b", 10, ends_turn=False)
    story.tier1("a", 0.6, at=11)
    story.tier1("b", 0.6, at=12)
    assert brief(story.score("other", 0.5, "b", at=500)) == []
    assert brief(story.tick(309.999)) == []
    assert brief(story.tick(310)) == decided("b")
    assert story.reports[0].decided_at == ms(500)


def test_a_turn_closes_at_its_largest_number_of_traces():
    story = Story(max_turn_traces=2)
    story.trace("a", 0, ends_turn=False)
    story.tier1("a", 0.6)
    story.tier1("b", 0.6)
    assert brief(story.trace("b", 1, ends_turn=False)) == decided("b")


def test_a_turn_holds_256_traces():
    story = Story(tier1_metrics=())
    for number in range(255):
        assert story.trace(f"t{number}", number, ends_turn=False) == ()
    assert brief(story.trace("last", 255, ends_turn=False)) == [
        ("report", "s/last", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/last", "none", "pending"),
    ]
    assert len(story.reports[0].trace_ids) == 256


@pytest.mark.parametrize("status", [TraceStatus.PENDING, TraceStatus.RUNNING, TraceStatus.ERROR])
def test_a_trace_that_is_not_completed_does_not_join(status):
    story = Story()
    assert story.trace("a", 0, status=status) == ()
    assert story.state.turns == ()
    story.trace("a", 5)
    story.tier1("a", 0.6)
    assert [report.trace_ids for report in story.reports] == [("a",)]


def test_which_statuses_are_evaluated_is_a_setting():
    story = Story(evaluated_statuses=("COMPLETED", "ERROR"))
    story.trace("a", 0, status=TraceStatus.ERROR)
    assert brief(story.tier1("a", 0.6)) == decided("a")


def test_a_turn_is_kept_in_the_order_of_starts():
    story = Story()
    story.trace("late", 0, started=9, ends_turn=False)
    story.trace("early", 1, started=3, ends_turn=False)
    story.trace("between", 2, started=5)
    for trace in ("late", "early", "between"):
        story.tier1(trace, 0.6)
    (report,) = story.reports
    assert report.trace_ids == ("early", "between", "late")
    assert report.turn_id == "s/between"


def test_a_trace_from_before_a_closed_turn_joins_the_open_one_and_is_journaled():
    story = Story()
    story.trace("b", 10)
    outputs = story.trace("a", 11, started=9.999, ends_turn=False)
    assert brief(outputs) == [("journal", "out_of_order", "started_before_a_closed_turn")]
    assert of(JournalEntry, outputs)[0].trace_id == "a"
    assert [[trace.trace_id for trace in turn.traces] for turn in story.state.turns] == [["b"], ["a"]]


def test_out_of_order_counts_decided_turns_too():
    story = Story()
    story.turn("b", 0.6, at=10)
    assert brief(story.trace("a", 11, started=9)) == [("journal", "out_of_order", "started_before_a_closed_turn")]


def test_a_trace_that_started_with_a_closed_turns_last_one_is_in_order():
    story = Story()
    story.trace("a", 10)
    assert story.trace("b", 10) == ()


def test_turns_are_decided_strictly_in_order():
    story = Story()
    story.trace("a", 0)
    story.trace("b", 1)
    assert story.tier1("b", 0.6) == ()
    assert story.score("task_completion", 0.5, "a") == ()
    assert brief(story.score("coherence", 0.9, "a")) == decided("a") + decided("b")
    assert [report.turn_number for report in story.reports] == [1, 2]
    assert [report.gates[0].peak_after for report in story.reports] == [0.5, 0.6]


def test_beyond_the_open_turns_the_oldest_is_decided_with_what_it_has():
    story = Story(max_open_turns=2)
    story.trace("a", 0)
    story.score("task_completion", 0.6, "a")
    assert story.trace("b", 1) == ()
    assert brief(story.trace("c", 2)) == [("journal", "overflow", "open_turns"), *decided("a")]
    assert [turn.closing_trace for turn in story.state.turns] == ["b", "c"]
    assert story.reports[0].scores[1].status == "PENDING"


def test_what_was_ready_behind_an_overflown_turn_is_decided_at_once():
    story = Story(max_open_turns=2)
    story.trace("a", 0)
    story.turn("b", 0.6, at=1)
    assert brief(story.trace("c", 2))[-2:] == decided("b")


def test_64_turns_may_wait():
    story = Story()
    for number in range(64):
        assert story.trace(f"t{number}", number) == ()
    assert brief(story.trace("t64", 64)) == [
        ("journal", "overflow", "open_turns"),
        ("report", "s/t0", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/t0", "none", "pending"),
    ]


def test_an_update_may_end_the_turn():
    story = Story()
    story.trace("a", 0, ends_turn=False)
    story.tier1("a", 0.6)
    assert brief(story.trace("a", 4)) == decided("a")


def test_an_update_moves_a_trace_of_an_open_turn():
    story = Story()
    story.trace("a", 0, started=1, ends_turn=False)
    story.trace("b", 1, started=2, ends_turn=False)
    story.trace("a", 2, started=3, ends_turn=False)
    assert [trace.trace_id for trace in story.state.turns[0].traces] == ["b", "a"]


def test_an_update_leaves_a_closed_turn_as_it_is():
    story = Story()
    story.trace("a", 0, started=1, ends_turn=False)
    story.trace("b", 1, started=2)
    before = story.state.turns
    assert story.trace("a", 2, started=3) == ()
    assert story.state.turns == before


def test_a_trace_is_evaluated_once():
    story = Story()
    story.turn("a", 0.6, at=0)
    assert story.trace("a", 5) == ()
    assert story.state.turns == ()


def test_a_session_belongs_to_the_project_of_its_latest_trace():
    story = Story()
    story.turn("a", 0.6, at=0)
    story.event(make_trace("b", 5, project="shop"), 5)
    story.tier1("b", 0.6)
    assert [report.project for report in story.reports] == ["default", "shop"]


def test_the_turns_input_is_its_first_traces():
    story = Story(gate_window=1)
    story.turn("z", 0.3, at=0)
    story.trace("b", 2, input='"second"', ends_turn=False)
    story.trace("a", 3, started=1, input='"first"')
    story.tier1("a", 0.3)
    story.tier1("b", 0.3)
    for metric in ("tool_correctness", "argument_correctness"):
        story.score(metric, 1.0, "b")
    (candidate,) = of(Candidate, story.outputs)
    assert candidate.input == '"first"'
