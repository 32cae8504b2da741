"""Pace: has the best of this series fallen behind what recorded sessions had reached by the same trace?

Example:
    >>> pace = Pace("m", points=(Point(1, 0.1), Point(3, 0.4)), until=9, patience=2)
    >>> state = pace.start()
    >>> for value in (0.2, 0.2, 0.2, 0.3):
    ...     state, fired = pace.step(state, value)
    >>> state, fired
    (PaceState(peak=0.3, behind=-1, seen=4), True)
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

TOLD: Final = -1


class Point(NamedTuple):
    """Where the line changes."""

    trace: int
    """From this trace of a session on, counted from 1."""
    line: float
    """What the peak should have reached, in [0, 1]."""
    sessions: int = 0
    """How many recorded sessions this was learned from: they were still going on."""


class PaceState(NamedTuple):
    """What pace remembers of one session and metric."""

    peak: float = 0.0
    """Highest value, in [0, 1]; means nothing while seen is 0."""
    behind: int = 0
    """Values in a row, up to the last one, at which the peak lay below the line; -1 once it has fired."""
    seen: int = 0
    """Values folded; 0 means not started."""


@dataclass(frozen=True)
class Pace:
    """Fires once, when the peak has lain below the line for `patience` values in a row after value number `after`.

    The line is a step function of the number of values seen, as `tgate calibrate` learns it; it needs nothing that
    comes later. Before its first point and after `until` it says nothing, and neither does pace.
    """

    metric: str
    """The tier-1 metric it watches."""
    task: str | None = None
    """The sessions it is for, by their task; none: those whose task has no line of its own."""
    after: int = 0
    """Values that are not judged yet, >= 0."""
    patience: int = 1
    """Values in a row below the line that count, >= 1."""
    points: tuple[Point, ...] = ()
    """The line, by trace number."""
    until: int = 0
    """The last value judged: beyond it too few recorded sessions went on."""
    quantile: float = 0.0
    """The share of recorded sessions whose peak lay at or below the line: how it was learned. It decides nothing."""

    def start(self) -> PaceState:
        return PaceState()

    def line(self, number: int) -> float | None:
        """Return the line at a session's value of this number, counted from 1; none where it says nothing."""
        at = bisect_right(self.points, number, key=lambda point: point.trace)
        return self.points[at - 1].line if at and self.after < number <= self.until else None

    def step(self, state: PaceState, value: float) -> tuple[PaceState, bool]:
        """Fold one value in [0, 1]; returns the new state and whether it fired."""
        peak, behind, seen = state
        peak = value if seen == 0 or value > peak else peak
        seen += 1
        if behind == TOLD:
            return PaceState(peak, TOLD, seen), False
        line = self.line(seen)
        behind = behind + 1 if line is not None and peak < line else 0
        fired = behind >= max(1, self.patience)
        return PaceState(peak, TOLD if fired else behind, seen), fired

    def __str__(self) -> str:
        where = f" of {self.task}" if self.task is not None else ""
        return f"{self.metric}{where} {self.patience} times below the {self.quantile:g} quantile after {self.after}"


def pace_of(found: Mapping[str, Any]) -> Pace:
    """Return the pace that a JSON object holds, as the rules' text has it."""
    return Pace(**{**found, "points": tuple(Point(*point) for point in found["points"])})
