"""What the microbenchmarks work on: one session as the core sees it, event by event."""

from collections.abc import Iterator

from streams.core import session
from streams.core.model import Position, Score, Trace, TraceStatus
from streams.core.rules import Rules
from streams.core.session import SessionEvent
from streams.core.state import SessionState

RULES = Rules(tier2_metrics=())
START_MS = 1_767_600_000_000


def bodies(traces: int, first: int = 0) -> Iterator[Trace | Score]:
    """Yield traces, each followed by its tier-1 scores, of a session that climbs slowly and then stands still."""
    for number in range(first, first + traces):
        trace_id = f"{number:032x}"
        now = START_MS + 1_000 * number
        yield Trace(trace_id, "project", TraceStatus.COMPLETED, now, now + 800, input='{"question":"what to do"}')
        value = round(min(0.9, 0.2 + number / 100) + (number % 3) / 100, 4)
        for metric in RULES.tier1_metrics:
            yield Score(
                f"{trace_id}-{metric}", trace_id, metric, value, created_at=now + 900, reason="two of five done"
            )


def events(traces: int, first: int = 0) -> list[SessionEvent]:
    """Return those as the events of one session."""
    return [
        SessionEvent("session-1", START_MS + 300 * place, Position(0, place), body)
        for place, body in enumerate(bodies(traces, first), first * 3)
    ]


def folded(found: list[SessionEvent], state: SessionState | None = None) -> SessionState:
    """Fold events into a session."""
    for event in found:
        state, _ = session.step(state, event, RULES)
    assert state is not None
    return state
