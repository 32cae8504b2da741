"""A draft takes a state apart and puts it together field by field, by position: none may end up in another's place."""

from streams.core.model import Position
from streams.core.rules import Rules
from streams.core.state import Draft, PendingTrace, SessionRun, SessionState, Turn, TurnTrace

PARTS = {
    "turns": (Turn((TurnTrace("a", 1),), 2), Turn((TurnTrace("b", 3),), 4)),
    "pending": (PendingTrace("c", 5), PendingTrace("d", 6)),
    "runs": (SessionRun("r", 7), SessionRun("q", 8)),
}


def test_a_step_that_changes_nothing_leaves_every_field_but_place_and_time_as_it_was():
    state = SessionState._make(PARTS.get(name, name) for name in SessionState._fields)
    after = Draft(state, Rules(), 11, Position(0, 12)).finish()
    assert type(after) is SessionState
    assert after == state._replace(offset=12, last_activity=11)
