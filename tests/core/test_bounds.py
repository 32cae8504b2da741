"""What a session holds undecided stays bounded: the oldest goes first, with what it has."""

from streams.core.model import JournalEntry, TraceStatus
from streams.core.state import MAX_HELD_BYTES
from streams.core.text import cut, plain
from tests.core.scenario import ANNOTATION, Story, brief, journaled, of

OVERFLOW = ("journal", "overflow", "undecided_traces")


def announced(count: int, **rules) -> Story:
    """Return a session with *count* traces announced that do not end."""
    story = Story(**rules)
    for number in range(count):
        assert story.trace(f"t{number}", 0, status=TraceStatus.RUNNING) == ()
    return story


def test_1024_traces_may_be_undecided_then_the_oldest_turn_is_decided():
    story = Story(max_turn_traces=2000)
    story.trace("first", 0, ends_turn=False)
    story.score("task_completion", 0.6, "first")
    for number in range(1023):
        assert story.trace(f"t{number}", 1, status=TraceStatus.RUNNING) == ()
    assert brief(story.trace("last", 2, status=TraceStatus.RUNNING)) == [
        OVERFLOW,
        ("report", "s/first", "quiet"),
        ("settled", "s/first", "none", "quiet"),
    ]
    assert len(story.state.pending) == 1024


def test_without_turns_the_oldest_announced_trace_is_dropped():
    story = announced(1024)
    (entry,) = of(JournalEntry, story.trace("last", 1, status=TraceStatus.RUNNING))
    assert (entry.kind, entry.reason, entry.trace_id) == ("overflow", "undecided_traces", "t0")
    assert [item.trace_id for item in story.state.pending][::1023] == ["t1", "last"]


def test_without_turns_the_oldest_scores_stand_before_their_time():
    story = Story()
    for number in range(1024):
        story.score("task_completion", 0.6, f"t{number}", at=0)
    assert brief(story.score("task_completion", 0.6, "last", at=1)) == [
        OVERFLOW,
        OVERFLOW,
        ("report", "s/t0", "quiet"),
        ("settled", "s/t0", "none", "quiet"),
    ]


def test_without_turns_the_oldest_annotation_is_late():
    story = Story()
    for number in range(1025):
        outputs = story.score("task_completion", 0.6, f"t{number}", at=0, source=ANNOTATION)
    assert brief(outputs) == [OVERFLOW, ("journal", "late", "trace_never_announced")]


def test_the_oldest_is_the_first_that_came_whatever_was_scored_since():
    story = announced(1024)
    story.score("task_completion", 0.6, "t0")
    (entry,) = of(JournalEntry, story.trace("last", 1, status=TraceStatus.RUNNING))
    assert entry.trace_id == "t0"


def test_a_turn_left_out_is_skipped_when_it_overflows():
    story = Story(eval_sample_every=2)
    story.turn("a", 0.6, at=0)
    for number in range(1024):
        story.trace(f"t{number}", 0, status=TraceStatus.RUNNING)
    assert brief(story.trace("b", 1)) == [
        OVERFLOW,
        ("journal", "skip", "eval_sample_every"),
        ("settled", "s/b", "none", "eval_sample_every"),
    ]


def test_what_undecided_scores_weigh_is_bounded():
    story = Story(max_turn_traces=2000)
    number = 0
    while not story.journal:
        story.trace(f"t{number}", number, ends_turn=False)
        for metric in range(8):
            story.score(f"m{metric}", 0.5, f"t{number}", reason="x" * 256)
        number += 1
    first, *rest = journaled(story.outputs)
    assert first == ("overflow", "undecided_traces")
    assert set(rest) <= {("late", "turn_decided")}
    assert len(story.reports[0].trace_ids) == number < 1024
    assert story.state.held_bytes <= MAX_HELD_BYTES
    assert story.state.turns == ()


def test_text_is_cut_to_whole_characters():
    assert [cut("añb", limit) for limit in (4, 3, 2, 1, 0)] == ["añb", "añ", "a", "a", ""]


def test_text_for_notices_is_printable():
    assert plain("a\x1b[31mb\u202ec\nd", 100) == "a [31mb c d"
    assert plain("plain", 3) == "pla"


def crowded(traces: int, **scores) -> Story:
    """Return a session whose last turn has *traces* traces with long ids and reasons, all fallen back."""
    story = Story(max_turn_traces=2000)
    story.turn("past", 0.9, at=0)
    names = [f"{number:0256}" for number in range(traces)]
    for number, name in enumerate(names):
        for metric in ("task_completion", "coherence", "politeness"):
            story.score(metric, 0.1, name, at=1, reason="x" * 256)
        story.trace(name, 1, started=1 + number, ends_turn=False)
    for metric, value in scores.items():
        story.score(metric, value)
    story.trace("last", 9, started=1 + traces)
    for _ in range(3):
        story.tick(story.now + 2)
    return story


def test_a_crowded_report_shows_what_alerts_before_all_else():
    report = crowded(200).reports[-1]
    assert {score.metric for score in report.scores} == {"task_completion", "coherence"}
    assert all(score.conditions for score in report.scores)
    assert len(report.scores) < 400
    assert report.flagged_traces == tuple(dict.fromkeys(score.trace_id for score in report.scores))


def test_a_crowded_report_is_as_severe_as_its_signatures():
    report = crowded(200, outcome_correct=0.0).reports[-1]
    assert report.signatures == ("breach:outcome_correct", "regression:coherence", "regression:task_completion")
    assert report.severity == "breach"
    assert "breach" in {condition for score in report.scores for condition in score.conditions}


def test_a_report_of_few_scores_shows_them_all_however_long():
    report = crowded(20).reports[-1]
    assert len(report.scores) == 3 * 20 + 2 + 2
