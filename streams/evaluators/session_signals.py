"""A session's signals as they come in: both session metrics at any time, without going through all traces again."""

import math
from bisect import bisect_left, insort
from typing import Final

from streams.evaluators.evaluation import Verdict
from streams.evaluators.session_metrics import (
    FLAGGED,
    SHOWN,
    Step,
    Values,
    consistency,
    consistency_step,
    reliability,
    reliability_step,
    weights_used,
    worst_needed,
)

_UNIT: Final = 1 << 60
"""Squares are added up in whole units of 1 / _UNIT: when one is taken away again, nothing is left behind."""


class SessionSignals:
    """Holds each trace's signals and keeps traces sorted by how bad they are.

    To put a trace takes a search and a place in a sorted list; a metric reads the worst traces only, which are the top
    15 % for reliability and a fixed number for consistency.
    """

    def __init__(self, weights: Values | None = None) -> None:
        """*weights*: by signal, in the place of the default ones."""
        self._weights = weights_used(weights)
        self._places: dict[str, int] = {}
        self._risky: dict[str, Step] = {}
        self._doubtful: dict[str, Step] = {}
        self._riskiest: list[Step] = []
        self._most_doubtful: list[Step] = []
        self._flagged = 0
        self._squares = 0

    def put(self, trace_id: str, signals: Values) -> None:
        """Let *signals*, by name and in [0, 1], be all that a trace has; a new trace is the session's latest."""
        signals = dict(signals)
        place = self._places.setdefault(trace_id, len(self._places))
        risky = reliability_step(place, trace_id, signals, self._weights)
        old, new = _replace(self._riskiest, self._risky, trace_id, risky)
        self._flagged += (new > FLAGGED) - (old > FLAGGED)
        doubtful = consistency_step(place, trace_id, signals, self._weights)
        old, new = _replace(self._most_doubtful, self._doubtful, trace_id, doubtful)
        self._squares += _square(new) - _square(old)

    def agent_reliability(self) -> Verdict:
        """How well the worst traces went so far."""
        usable, total = len(self._risky), len(self._places)
        return reliability(self._riskiest[-worst_needed(usable) :], usable, total, self._flagged, self._weights)

    def agent_consistency(self) -> Verdict:
        """How sure of itself the agent was so far."""
        usable, total = len(self._doubtful), len(self._places)
        return consistency(self._most_doubtful[-SHOWN:], usable, total, self._squares / _UNIT, self._weights)


def _replace(ranked: list[Step], held: dict[str, Step], trace_id: str, step: Step | None) -> tuple[float, float]:
    """Put a trace's step in the place of its old one; returns the old and the new badness, 0 where there is none."""
    old = held.pop(trace_id, None)
    if old is not None:
        del ranked[bisect_left(ranked, old)]
    if step is not None:
        held[trace_id] = step
        insort(ranked, step)
    return old.badness if old else 0.0, step.badness if step else 0.0


def _square(badness: float) -> int:
    return math.floor(badness * badness * _UNIT)
