"""Whole sessions as arrays: the values that a detector folded, in its order, and where turns ended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Tracks:
    """Sessions end to end in flat arrays.

    names: one a session.
    metrics: one a row of values.
    values: metrics x traces; NaN where a trace has no value of a metric.
    starts: where each session begins, and where the last one ends.
    ends: whether a turn ends at the trace; none when each trace is a turn of its own.
    """

    names: tuple[str, ...]
    metrics: tuple[str, ...]
    values: Floats
    starts: Ints
    ends: Bools | None = None

    @cached_property
    def lengths(self) -> Ints:
        """Traces of each session."""
        return np.diff(self.starts)

    @property
    def traces(self) -> int:
        return int(self.starts[-1])

    def of(self, session: int, metric: int = 0) -> Floats:
        """Return one session's values of one metric, those missing left out."""
        held = self.values[metric, self.starts[session] : self.starts[session + 1]]
        return held[~np.isnan(held)]

    def metric(self, metric: int) -> list[Floats]:
        """Return every session's values of one metric, sessions without any left out."""
        found = (self.of(session, metric) for session in range(len(self.names)))
        return [values for values in found if len(values)]

    def take(self, sessions: Sequence[int] | Ints) -> "Tracks":
        """Return some of the sessions."""
        pieces = [np.arange(self.starts[at], self.starts[at + 1]) for at in sessions]
        places = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
        starts = np.concatenate([[0], np.cumsum(self.lengths[list(sessions)])]).astype(np.int64)
        ends = None if self.ends is None else self.ends[places]
        return Tracks(tuple(self.names[at] for at in sessions), self.metrics, self.values[:, places], starts, ends)


def tracks(
    metrics: Sequence[str],
    sessions: Iterable[tuple[str, Sequence[Sequence[float | None]], Sequence[bool] | None]],
) -> Tracks:
    """Make tracks of (name, rows with one value a metric, whether a turn ends at each row)."""
    names: list[str] = []
    rows: list[Sequence[float | None]] = []
    ends: list[bool] = []
    starts = [0]
    for name, held, turn_ends in sessions:
        names.append(name)
        rows += held
        ends += turn_ends if turn_ends is not None else [True] * len(held)
        starts.append(len(rows))
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(metrics)).T.copy()
    each = None if all(ends) else np.array(ends, dtype=np.bool_)
    return Tracks(tuple(names), tuple(metrics), values, np.array(starts, dtype=np.int64), each)
