"""Turns are made anew field by field, by position: what a score or the closing does not change stays in its place."""

import pytest

from streams.core.model import Position
from streams.core.rules import Rules
from streams.core.state import Draft, SessionState, Turn
from streams.core.turns import close, scored

TURN = Turn._make(Turn._fields)._replace(closed_at=None, tier=2, attempt=1)


@pytest.mark.parametrize(("given_up", "after"), [(0, 0), (1, 1), (2, 1)])
def test_a_score_changes_what_the_turn_has_and_starts_its_wait_anew(given_up, after):
    turn = scored(TURN._replace(given_up=given_up), 7, ("trace",), ("score",))
    assert type(turn) is Turn
    assert turn == TURN._replace(traces=("trace",), scores=("score",), scored_at=7, given_up=after)


def test_closing_changes_only_what_it_is_about():
    draft = Draft(SessionState("s", turns=(TURN,), turn_count=4), Rules(), 7, Position(0, 1))
    close(draft, "last")
    assert draft.turns == [
        TURN._replace(closed_at=7, number=5, closing_trace="last", skip="", tier_since=7),
    ]
