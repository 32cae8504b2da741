"""A session's record stays small however long the session, and within bounds however much it holds undecided."""

import pytest

from streams.core import session
from streams.core.model import Position, Score, Trace, TraceStatus
from streams.core.rules import Rules
from streams.core.session import SessionEvent
from streams.core.state import SessionState
from streams.settings import Settings
from streams.wire import Wire, encode_state

KIB = 1024


def wide(text: str) -> str:
    """An id as large as ids may be: 256 bytes, of characters that take four each."""
    return (f"{text}-".ljust(16, "x") + "𝔸" * 60)[:76]


def feed(rules: Rules, bodies, name: str = "s") -> SessionState:
    state = None
    for offset, body in enumerate(bodies):
        state, _ = session.step(state, SessionEvent(name, 1_000 + offset, Position(0, offset), body), rules)
    assert state is not None
    return state


def test_a_long_session_takes_no_more_than_a_short_one():
    def turns(count):
        for number in range(count):
            yield Trace(f"trace-{number:06d}", "project", TraceStatus.COMPLETED, number, input='"what to do"')
            for metric in ("task_completion", "coherence", "tool_correctness"):
                yield Score(
                    f"score-{number:06d}-{metric}", f"trace-{number:06d}", metric, 0.5, reason="because of that"
                )

    sizes = {count: len(encode_state(feed(Rules(gate_target=0.0), turns(count)))) for count in (200, 2000)}
    assert sizes[2000] <= sizes[200] + 16
    assert sizes[2000] < 4 * KIB


def test_two_open_turns_stay_under_4_kib():
    rules = Rules(gate_target=0.0)
    bodies = []
    for number in range(300):
        bodies.append(Trace(f"trace-{number:06d}", "project", TraceStatus.COMPLETED, number))
        metrics = ("task_completion", "coherence") if number < 298 else ("task_completion",)
        bodies += [Score(f"score-{number}-{metric}", f"trace-{number:06d}", metric, 0.5) for metric in metrics]
    state = feed(rules, bodies)
    assert len(state.turns) == 2
    assert len(encode_state(state)) < 4 * KIB


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("reason", ["", "𝔸" * 64], ids=["short", "long"])
def test_the_largest_session_stays_under_900_kib(announced, reason):
    rules = Rules(tier1_metrics=tuple(wide(f"metric{number}") for number in range(16)), max_turn_traces=1024)
    flagged = tuple(wide(f"flagged{number}") for number in range(64))

    def bodies():
        for number in range(1300):
            trace_id = wide(f"trace{number}")
            if announced:
                yield Trace(trace_id, wide("project"), TraceStatus.COMPLETED, number, ends_turn=False, input="𝔸" * 256)
            for extra in range(6):
                metric = wide(f"other{extra}")
                named = flagged if extra == 0 else ()
                yield Score(wide(f"{extra}-{number}"), trace_id, metric, 0.5, reason=reason, flagged_traces=named)
        for run in range(20):
            for extra in range(20):
                yield Score(
                    wide(f"r{run}-{extra}"),
                    None,
                    "agent_reliability",
                    0.5,
                    reason=reason,
                    eval_run_id=wide(f"run{run}"),
                )

    states, outputs = [], []
    state = None
    for offset, body in enumerate(bodies()):
        state, found = session.step(state, SessionEvent("s", 1_000, Position(0, offset), body), rules)
        outputs += found
        if offset % 100 == 0:
            states.append(len(encode_state(state)))
    assert 300 * KIB < max(states) < 900 * KIB
    # Whatever is allowed of others: a report that cannot be written would stop its partition for good.
    wire = Wire.of(Settings(max_record_bytes=10_000))
    assert max(len(wire.write(output)) for output in outputs) > 10_000
