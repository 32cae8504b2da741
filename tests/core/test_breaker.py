"""The circuit breaker's whole step: what is published, suppressed, captured, reset."""

from dataclasses import replace

import pytest

from streams.core.breaker import BreakerState, Held, step
from streams.core.model import (
    BreakerReset,
    Candidate,
    EvalCase,
    JournalEntry,
    Lane,
    NeedsHuman,
    Notice,
    Position,
    Severity,
    TurnSettled,
)
from tests.core.scenario import brief, ms

CLOSED = BreakerState()
VALUES = (("t1", "task_completion", 0.3), (None, "outcome_correct", 0.0))


def candidate(number: int, at: float, session: str = "s", **changes) -> Candidate:
    """Return a breach notice of turn *number* at *at* seconds, for a breaker of two notices in ten seconds."""
    notice = Notice(
        notice_id=f"n{number}",
        project="p",
        session_id=session,
        turn_id=f"{session}/t{number}",
        lane=Lane.TRACE,
        severity=Severity.BREACH,
        signatures=("breach:tool_correctness",),
        scores=(),
        flagged_traces=(),
        values=VALUES,
        summary="tool_correctness 0.1: below its threshold 0.5",
        time=ms(at),
        shadow=False,
        rules_hash="h",
    )
    made = Candidate(notice, Position(0, number), 1, 2, ms(10), capture_case=False, input='"do it"')
    names = {"severity", "signatures"} & changes.keys()
    made = replace(made, notice=replace(notice, **{name: changes.pop(name) for name in names}))
    return replace(made, **changes)


def run(*events, state: BreakerState = CLOSED):
    """Fold events; returns the last state and the outputs of each."""
    outputs = []
    for event in events:
        now = event.requested_at if isinstance(event, BreakerReset) else event.notice.time
        state, found = step(state, event, now)
        outputs.append(found)
    return state, outputs


def test_a_notice_is_published_and_its_turn_settled():
    event = candidate(1, 5)
    state, ((notice, settled),) = run(event)
    assert notice == event.notice
    assert (settled.outcome, settled.reason, settled.notice_id, settled.time) == ("posted", "breach", "n1", ms(5))
    assert (settled.session_id, settled.project, settled.lane, settled.turn_id) == ("s", "p", Lane.TRACE, "s/t1")
    assert state == BreakerState((Held(ms(5), "s", ("breach:tool_correctness",)),))


def test_too_many_call_a_human_once_then_all_is_suppressed():
    state, outputs = run(
        candidate(1, 0, "b", signatures=("stall:m",)), candidate(2, 1, "a"), candidate(3, 2, "b"), candidate(4, 3)
    )
    assert [brief(found)[0][:2] for found in outputs] == [
        ("notice", "breach"),
        ("notice", "breach"),
        ("NeedsHuman",),
        ("journal", "suppressed"),
    ]
    human, settled = outputs[2]
    assert human == NeedsHuman(
        needs_human_id=human.needs_human_id,
        project="p",
        session_id="b",
        turn_id="b/t3",
        notices=3,
        window_ms=10_000,
        sessions=("b", "a"),
        signatures=("breach:tool_correctness", "stall:m"),
        summary=(
            "3 notices within 10 s in project p (2 sessions): "
            "notices are held back until a human has looked, or until it is quiet"
        ),
        time=ms(2),
    )
    assert (settled.outcome, settled.notice_id) == ("needs_human", "n3")
    entry, settled = outputs[3]
    assert isinstance(entry, JournalEntry)
    assert (entry.reason, entry.notice, entry.detail, entry.turn_id) == (
        "breaker_tripped",
        candidate(4, 3).notice,
        candidate(4, 3).notice.summary,
        "s/t4",
    )
    assert settled.outcome == "suppressed"
    assert (state.tripped, [item.time for item in state.held]) == (True, [0, 1000])


def test_the_call_for_a_human_has_the_id_of_what_tripped_it():
    def human_id(*events) -> str:
        return run(*events)[1][-1][0].needs_human_id

    one = human_id(candidate(1, 0), candidate(2, 1), candidate(3, 2))
    assert one == human_id(candidate(8, 5, "x"), candidate(9, 6, "y"), candidate(3, 7))
    assert one != human_id(candidate(1, 0), candidate(2, 1), candidate(4, 2))


def test_it_closes_again_once_no_notice_is_held():
    events = [candidate(1, 0), candidate(2, 1), candidate(3, 2)]
    _, outputs = run(*events, candidate(4, 11), candidate(5, 11.001))
    assert [found[-1].outcome for found in outputs[3:]] == ["suppressed", "posted"]


def test_a_notice_is_held_for_the_whole_window():
    events = [candidate(1, 0), candidate(2, 0)]
    assert run(*events, candidate(3, 10))[1][2][-1].outcome == "needs_human"
    assert run(*events, candidate(3, 10.001))[1][2][-1].outcome == "posted"


def test_time_never_goes_back():
    state, outputs = run(candidate(1, 50), candidate(2, 20))
    assert [item.time for item in state.held] == [ms(50), ms(50)]
    assert outputs[1][-1].time == ms(50)


def test_zero_turns_it_off():
    events = [candidate(number, 0, breaker_max_notices=0) for number in range(50)]
    state, outputs = run(*events)
    assert {found[-1].outcome for found in outputs} == {"posted"}
    assert state == BreakerState()


@pytest.mark.parametrize("severity", [Severity.TREND, Severity.RELATIVE])
def test_a_case_is_captured_of_a_posted_breach_only(severity):
    captured = run(candidate(1, 0, capture_case=True))[1][0]
    case = captured[1]
    assert [type(item) for item in captured] == [Notice, EvalCase, TurnSettled]
    assert (case.signatures, case.baseline, case.input, case.turn_id, case.time) == (
        ("breach:tool_correctness",),
        VALUES,
        '"do it"',
        "s/t1",
        0,
    )
    other = run(candidate(1, 0, capture_case=True, severity=severity))[1][0]
    assert [type(item) for item in other] == [Notice, TurnSettled]
    tripped = run(*(candidate(number, 0, capture_case=True) for number in range(4)))[1]
    assert [type(item) for found in tripped[2:] for item in found] == [
        NeedsHuman,
        TurnSettled,
        JournalEntry,
        TurnSettled,
    ]


def test_a_reset_lets_notices_through_again():
    tripped, _ = run(*(candidate(number, 0) for number in range(4)))
    state, ((entry,), found) = run(BreakerReset("p", ms(1), "looked at it"), candidate(9, 1), state=tripped)
    assert (entry.kind, entry.reason, entry.detail, entry.project, entry.time) == (
        "breaker_reset",
        "was_tripped",
        "looked at it",
        "p",
        ms(1),
    )
    assert found[-1].outcome == "posted"
    assert len(state.held) == 1


def test_a_reset_of_a_closed_breaker_says_so():
    _, ((entry,),) = run(BreakerReset("p", 0))
    assert (entry.kind, entry.reason) == ("breaker_reset", "was_closed")


def test_every_output_has_an_id_of_its_own():
    events = [candidate(number, number / 10, capture_case=True) for number in range(6)]
    outputs = [item for found in run(*events)[1] for item in found]
    names = ("notice_id", "case_id", "needs_human_id", "journal_id")
    own = [next((getattr(item, name) for name in names if hasattr(item, name)), None) for item in outputs]
    settled = [item.settled_id for item in outputs if isinstance(item, TurnSettled)]
    ids = [item for item, output in zip(own, outputs, strict=True) if not isinstance(output, TurnSettled)]
    assert len({*ids, *settled}) == len(outputs)


def test_what_is_held_of_a_notice_with_many_signatures_is_bounded():
    many = tuple(f"breach:{number:0120}" for number in range(8))
    state, _ = run(candidate(1, 0, signatures=many))
    assert state.held[0].signatures == many[:3]
