"""Stretches of a log, logs that begin in the middle, and how two replays differ."""

from dataclasses import replace

import pytest

from streams.core.log import LogRecord
from streams.core.model import Candidate, Lane, Notice, Report, Score, Severity, Trace, TraceStatus
from streams.core.rules import Rules
from streams.replay.choice import Choice
from streams.replay.difference import Kind, compare
from streams.replay.folding import Replay, always, changed

RULES = Rules(tier1_metrics=("task_completion",), tier2_metrics=())


def events(values: list[float], start: int = 1, first: int = 0) -> list[LogRecord]:
    """One trace a turn with its score, two records each from the offset *start* on."""
    found = []
    for number, value in enumerate(values, first):
        offset, time = start + 2 * (number - first), 1000 * number
        found.append(LogRecord(offset, time, Trace(f"t{number}", "p", TraceStatus.COMPLETED, time), "s"))
        found.append(LogRecord(offset + 1, time + 1, Score(f"c{number}", f"t{number}", "task_completion", value), "s"))
    return found


FALLS = [LogRecord(0, 0, RULES), *events([0.6, 0.7, 0.3, 0.3])]


def outputs(replay: Replay, records: list[LogRecord], kind: type) -> list:
    found = [output for record in records for output in replay.apply(0, record)]
    return [item for item in [*found, *replay.settle()] if isinstance(item, kind)]


def test_a_log_that_begins_before_its_rules_is_folded_under_the_first_ones() -> None:
    whole = outputs(Replay(), FALLS, Report)
    cut = [*events([0.6, 0.7]), LogRecord(5, 1500, RULES), *events([0.3, 0.3], 6, 2)]
    found = outputs(Replay(), cut, Report)
    assert [item.gates for item in found] == [item.gates for item in whole]


def test_records_without_any_rules_are_counted() -> None:
    replay = Replay()
    assert outputs(replay, events([0.6]), Report) == []
    assert replay.left_out == 2


def test_other_rules_and_changed_ones() -> None:
    other = Rules(tier1_metrics=("task_completion",), tier2_metrics=(), gate_drop=1.0)
    for change in (always(other), changed({"gate_drop": 1.0})):
        replay = Replay(change)
        assert outputs(replay, FALLS, Candidate) == []
        assert (replay.recorded_rules, replay.rules) == ([RULES], [other])
    assert len(outputs(Replay(), FALLS, Candidate)) == 1


def test_offsets_choose_what_is_shown_and_cold_begins_there() -> None:
    stretch = {0: (5, 6)}
    (report,) = outputs(Replay(choice=Choice(offsets=stretch)), FALLS, Report)
    assert (report.turn_number, report.signatures) == (3, ("regression:task_completion",))
    (report,) = outputs(Replay(choice=Choice(offsets=stretch, cold=True)), FALLS, Report)
    assert (report.turn_number, report.signatures) == (1, ())


def test_notices_of_projects_and_sessions() -> None:
    assert len(outputs(Replay(choice=Choice(projects=frozenset({"p"}))), FALLS, Notice)) == 1
    assert outputs(Replay(choice=Choice(projects=frozenset({"q"}))), FALLS, Notice) == []
    assert outputs(Replay(choice=Choice(sessions=frozenset({"q"}))), FALLS, Report) == []


NOTICE = Notice(
    "n1", "p", "s", "s/t1", Lane.TRACE, Severity.TREND, ("stall:m",), (), (), (), "", 5000, shadow=False, rules_hash="r"
)


@pytest.mark.parametrize(
    ("before", "after", "kinds", "same"),
    [
        ([NOTICE], [replace(NOTICE, rules_hash="other")], [], 1),
        ([NOTICE], [], [Kind.LOST], 0),
        ([], [NOTICE], [Kind.GAINED], 0),
        ([NOTICE], [replace(NOTICE, severity=Severity.BREACH)], [Kind.CHANGED], 0),
        ([NOTICE], [replace(NOTICE, time=4000)], [Kind.EARLIER], 0),
        ([NOTICE], [replace(NOTICE, notice_id="n2", time=9000)], [Kind.LATER], 0),
        ([NOTICE], [replace(NOTICE, notice_id="n2", time=9000, session_id="t")], [Kind.LOST, Kind.GAINED], 0),
        ([NOTICE], [replace(NOTICE, notice_id="n2", signatures=("regression:m",))], [Kind.LOST, Kind.GAINED], 0),
    ],
)
def test_differences(before: list[Notice], after: list[Notice], kinds: list[Kind], same: int) -> None:
    found, unchanged = compare(before, after)
    assert sorted(item.kind for item in found) == sorted(kinds)
    assert unchanged == same


def test_of_several_later_ones_the_nearest_is_meant() -> None:
    near, far = (replace(NOTICE, notice_id=f"n{time}", time=time) for time in (6000, 60_000))
    found, _ = compare([NOTICE], [far, near])
    assert [(item.kind, item.after.time, item.shift_ms) for item in found if item.after] == [
        (Kind.LATER, 6000, 1000),
        (Kind.GAINED, 60_000, 0),
    ]
