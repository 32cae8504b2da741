"""When a session's next wait runs out: the first of all that it waits for."""

import pytest

from streams.core.rules import Rules
from streams.core.session import next_due
from streams.core.state import PendingTrace, SessionRun, SessionState, Turn, TurnTrace

RULES = Rules(turn_idle_s=10, unannounced_wait_s=20, score_wait_s=30)
OPEN = {at: Turn((TurnTrace("a", 0),), at) for at in (0, 5_000)}
PENDING = {at: PendingTrace("b", at) for at in (-11_000, 0, 5_000)}
RUN = {at: SessionRun("r", at) for at in (-21_000, 0)}


@pytest.mark.parametrize(
    ("held", "due"),
    [
        ({}, None),
        ({"turns": (OPEN[0],)}, 10_000),
        ({"turns": (OPEN[5_000], OPEN[0])}, 10_000),
        ({"turns": (OPEN[0], OPEN[5_000])}, 10_000),
        ({"pending": (PENDING[5_000],)}, 25_000),
        ({"runs": (RUN[0],)}, 30_000),
        ({"turns": (OPEN[0],), "pending": (PENDING[0],), "runs": (RUN[0],)}, 10_000),
        ({"turns": (OPEN[0],), "pending": (PENDING[-11_000],), "runs": (RUN[0],)}, 9_000),
        ({"turns": (OPEN[0],), "pending": (PENDING[0],), "runs": (RUN[-21_000],)}, 9_000),
        ({"turns": (Turn((TurnTrace("a", 0),), 0, closed_at=1, skip="left out"),)}, None),
    ],
)
def test_it_is_the_first_of_all_waits(held, due):
    assert next_due(SessionState("s", **held), RULES) == due
