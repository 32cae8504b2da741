"""Pace: when it fires, that it only advises, and what a session does where it is switched on, by task, or not at all."""

import pytest

from streams.core.model import Candidate, EvalRequest, Severity
from streams.core.pace import TOLD, Pace, PaceState, Point
from streams.core.rules import Rules
from tests.core.scenario import Story, brief, found, of

LINE = (Point(1, 0.1, 40), Point(3, 0.4, 30), Point(6, 0.2, 12))
PACE = Pace("task_completion", points=LINE, until=8)
ONE = {"tier1_metrics": ("task_completion",)}


def fired(pace: Pace, *values: float) -> list[int]:
    """Return the numbers of the values at which it fired."""
    state, numbers = pace.start(), []
    for number, value in enumerate(values, 1):
        state, now = pace.step(state, value)
        numbers += [number] * now
    return numbers


def test_the_line_is_a_step_function_that_ends():
    pace = Pace("m", points=LINE[1:], until=8, after=3)
    assert [pace.line(number) for number in range(1, 11)] == [None] * 3 + [0.4, 0.4, 0.2, 0.2, 0.2, None, None]


@pytest.mark.parametrize(
    ("changes", "values", "numbers"),
    [
        ({}, (0.3, 0.3, 0.3), [3]),
        ({}, (0.4, 0.1, 0.1, 0.0), []),  # the peak counts, not the value
        ({}, (0.3, 0.3, 0.4, 0.4), []),  # on the line is not below it
        ({"patience": 3}, (0.3,) * 8, [5]),
        ({"patience": 4}, (0.3,) * 8, []),  # the line falls before the fourth
        ({"patience": 2}, (0.3, 0.3, 0.3, 0.5, 0.5), []),
        ({"after": 3}, (0.3,) * 8, [4]),
        ({"after": 3, "patience": 3}, (0.1,) * 8, [6]),
        ({"after": 7}, (0.1,) * 12, [8]),
        ({"after": 8}, (0.1,) * 12, []),  # nothing is judged beyond the last point's stretch
        ({}, (0.0, 0.3, 0.3, 0.3), [1]),  # once, though it catches up and falls behind again
        ({"patience": 0}, (0.3, 0.3, 0.3), [3]),  # less than 1 counts as 1
    ],
)
def test_when_it_fires(changes, values, numbers):
    assert fired(Pace("m", points=LINE, until=8, **changes), *values) == numbers


def test_the_state_is_three_numbers_however_long_the_session():
    state = PACE.start()
    for _ in range(1000):
        state, _ = PACE.step(state, 0.3)
    assert state == PaceState(0.3, TOLD, 1000)


def test_it_advises_and_asks_for_nothing():
    story = Story(pace=(PACE,), request_evals=True, **ONE)
    for number in range(3):
        story.trace(f"t{number}", number)
        story.score("task_completion", 0.3, f"t{number}")
    assert [item.tier for item in of(EvalRequest, story.outputs)] == [1, 1, 1]
    (candidate,) = of(Candidate, story.outputs)
    notice = candidate.notice
    assert (notice.severity, notice.signatures) == (Severity.TREND, ("pace:task_completion",))
    assert notice.summary == ("task_completion 0.3 on trace t2: behind the pace, its peak 0.3 stays below the line 0.4")
    assert [score.pace_line for report in story.reports for score in report.scores] == [0.1, 0.1, 0.4]


def test_it_is_said_beside_what_the_gate_finds_and_is_told_once():
    story = Story(pace=(PACE,), gate_window=2, tier2_metrics=(), **ONE)
    for number in range(6):
        story.trace(f"t{number}", number)
        story.score("task_completion", 0.3, f"t{number}")
    assert [report.signatures for report in story.reports] == [
        (),
        (),
        ("pace:task_completion", "stall:task_completion"),
        (),
        ("stall:task_completion",),
        (),
    ]
    assert found(story.reports[2]) == [("task_completion", "t2", 0.3, ("stall", "pace"))]


def test_without_a_line_nothing_is_kept_or_said():
    story = Story(pace=(Pace("coherence", points=LINE, until=8),), **ONE)
    for number in range(6):
        story.trace(f"t{number}", number)
        story.score("task_completion", 0.0, f"t{number}")
    assert story.state.paces == {}
    assert {score.pace_line for report in story.reports for score in report.scores} == {None}


def test_values_that_are_missing_do_not_count():
    story = Story(pace=(PACE,), **ONE)
    for number, value in enumerate((0.3, None, 0.3, None, 0.3)):
        story.trace(f"t{number}", number)
        story.score("task_completion", value, f"t{number}")
    assert [bool(report.signatures) for report in story.reports] == [False, False, False, False, True]


def test_every_metric_has_a_pace_of_its_own():
    story = Story(pace=(PACE, Pace("coherence", points=(Point(1, 0.9),), until=9)))
    story.turn("a", 0.3, 0.8, at=0)
    assert story.reports[0].signatures == ("pace:coherence",)
    assert story.state.paces == {"task_completion": PaceState(0.3, 0, 1), "coherence": PaceState(0.8, TOLD, 1)}


def test_a_session_is_held_to_the_line_of_its_task():
    hard = Pace("task_completion", task="hard", points=(Point(1, 0.05),), until=9)

    def said(*tasks: str | None) -> list[bool]:
        story = Story(pace=(PACE, hard), **ONE)
        for number, task in enumerate(tasks):
            story.trace(f"t{number}", number, task=task)
            story.score("task_completion", 0.3, f"t{number}")
        assert {report.task for report in story.reports[-1:]} == {next(filter(None, tasks), None)}
        return [bool(report.signatures) for report in story.reports]

    assert said(None, None, None) == [False, False, True]
    assert said("hard", None, None) == [False, False, False]
    assert said(None, "hard", "soft") == [False, False, False]  # the first one named stays
    assert said("soft", None, None) == [False, False, True]  # no line of its own: the one for all


def test_switched_on_in_mid_session_it_takes_over_what_the_gate_has_seen():
    story = Story(**ONE)
    for number in range(2):
        story.trace(f"t{number}", number)
        story.score("task_completion", 0.3, f"t{number}")
    story.switch(pace=(PACE,), **ONE)
    story.trace("t2", 2)
    assert brief(story.score("task_completion", 0.3, "t2"))[0] == ("report", "s/t2", "posted_new")
    assert story.state.paces == {"task_completion": PaceState(0.3, TOLD, 3)}
    story.switch(**ONE)
    story.trace("t3", 3)
    story.score("task_completion", 0.3, "t3")
    assert story.state.paces == {}


def test_what_it_missed_while_its_line_was_away_it_takes_over_from_the_gate():
    other = Pace("coherence", points=(Point(1, 0.0),), until=9)
    story = Story(pace=(PACE, other))
    story.turn("a", 0.2, at=0)
    story.switch(pace=(other,))
    story.turn("b", 0.35, at=1)
    assert story.state.paces["task_completion"] == PaceState(0.2, 0, 1)
    story.switch(pace=(PACE, other))
    story.turn("c", 0.3, at=2)
    assert story.state.paces["task_completion"] == PaceState(0.35, TOLD, 3)


def test_the_lines_are_part_of_the_rules_and_their_hash():
    rules = Rules(pace=(PACE, Pace("m", "task", 1, 2, LINE, 9, 0.1)))
    assert Rules.from_text(rules.text) == rules
    assert Rules.from_text(rules.text).hash == rules.hash
    assert len({rules.hash, Rules().hash, Rules(pace=(PACE,)).hash}) == 3
