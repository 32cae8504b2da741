"""Turns that cost controls leave out."""

from streams.core.model import EvalRequest, JournalEntry
from tests.core.scenario import Story, brief, journaled, of


def skipped(trace: str, reason: str) -> list[tuple]:
    return [("journal", "skip", reason), ("settled", f"s/{trace}", "none", reason)]


def test_one_turn_in_three_is_evaluated():
    story = Story(eval_sample_every=3)
    for number in range(5):
        outputs = story.trace(f"t{number}", number)
        if number % 3:
            assert brief(outputs) == skipped(f"t{number}", "eval_sample_every")
            (entry,) = of(JournalEntry, outputs)
            assert entry.turn_id == f"s/t{number}"
        else:
            assert brief(outputs) == []
            story.tier1(f"t{number}", 0.6)
    assert [report.turn_id for report in story.reports] == ["s/t0", "s/t3"]
    assert [report.turn_number for report in story.reports] == [1, 4]


def test_a_skipped_turn_moves_no_gate_and_asks_for_nothing():
    story = Story(eval_sample_every=2, request_evals=True)
    story.turn("a", 0.6, at=0)
    gates = story.state.gates
    story.tier1("b", 0.1, at=1)
    assert brief(story.trace("b", 2)) == skipped("b", "eval_sample_every")
    assert story.state.gates == gates
    assert [request.turn_id for request in of(EvalRequest, story.outputs)] == ["s/a"]


def test_turns_within_the_interval_since_the_last_evaluated_one_are_skipped():
    story = Story(session_min_eval_interval_s=60)
    story.turn("a", 0.6, at=0)
    assert brief(story.trace("b", 59.999)) == skipped("b", "session_min_eval_interval_s")
    assert brief(story.turn("c", 0.6, at=60)) == [("report", "s/c", "quiet"), ("settled", "s/c", "none", "quiet")]
    assert brief(story.trace("d", 61)) == skipped("d", "session_min_eval_interval_s")


def test_a_skipped_turn_is_settled_in_its_place():
    story = Story(eval_sample_every=2)
    story.trace("a", 0)
    assert story.trace("b", 1) == ()
    outputs = story.tier1("a", 0.6)
    assert brief(outputs) == [
        ("report", "s/a", "quiet"),
        ("settled", "s/a", "none", "quiet"),
        *skipped("b", "eval_sample_every"),
    ]


def test_scores_of_a_skipped_turn_are_late():
    story = Story(eval_sample_every=2)
    story.turn("a", 0.6, at=0)
    story.trace("b", 1)
    assert journaled(story.score("coherence", 0.1, "b")) == [("late", "turn_decided")]


def test_a_skipped_turn_behind_an_overflown_one_is_settled_with_it():
    story = Story(eval_sample_every=2, max_open_turns=1)
    story.trace("a", 0)
    assert brief(story.trace("b", 1)) == [
        ("journal", "overflow", "open_turns"),
        ("report", "s/a", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/a", "none", "pending"),
        *skipped("b", "eval_sample_every"),
    ]
