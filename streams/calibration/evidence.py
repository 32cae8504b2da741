"""What each setting would have meant for labelled sessions: what it found, what it raised for nothing, how early."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streams.calibration.bounds import interval, upper_rate
from streams.calibration.sweep import Sweep
from streams.calibration.tracks import Bools, Floats, Ints, Tracks


@dataclass(frozen=True)
class Evidence:
    """A sweep beside the labels; arrays by setting.

    lengths: traces of each session.
    failed, good: which sessions are labelled so; a session may be neither.
    strict: there are no labels. Every session then counts as good, so that every alarm is false, and as failed, so that
        of two settings with as few alarms the one that speaks of more sessions is the better.
    """

    sweep: Sweep
    lengths: Ints
    failed: Bools
    good: Bools
    strict: bool = False

    @cached_property
    def flagged(self) -> Bools:
        """Settings x sessions: whether there was a notice."""
        found: Bools = self.sweep.first > 0
        return found

    @property
    def labeled(self) -> bool:
        return bool(self.failed.any() or self.good.any())

    @property
    def two_sided(self) -> bool:
        """Whether there are failed and good sessions: without both, settings cannot be told apart."""
        return bool(self.failed.any() and self.good.any())

    @cached_property
    def tp(self) -> Ints:
        return np.asarray((self.flagged & self.failed).sum(axis=1), np.int64)

    @cached_property
    def fp(self) -> Ints:
        return np.asarray((self.flagged & self.good).sum(axis=1), np.int64)

    @cached_property
    def precision(self) -> Floats:
        """Share of the flagged sessions that failed; 0 without any."""
        return np.asarray(self.tp / np.maximum(1, self.tp + self.fp), np.float64)

    @cached_property
    def recall(self) -> Floats:
        """Share of the failed sessions that were flagged; 0 without any."""
        return self.tp / max(1, int(self.failed.sum()))

    @cached_property
    def f1(self) -> Floats:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / np.where(both == 0, 1, both)

    @cached_property
    def per_1000(self) -> Floats:
        """Notices per 1,000 traces of all sessions."""
        return np.asarray(1000 * self.sweep.notices.sum(axis=1) / max(1, int(self.lengths.sum())), np.float64)

    @cached_property
    def good_traces(self) -> int:
        return int(self.lengths[self.good].sum())

    @cached_property
    def false_alarms(self) -> Ints:
        """Notices in good sessions."""
        return np.asarray(self.sweep.notices[:, self.good].sum(axis=1), np.int64)

    @cached_property
    def false_rate(self) -> Floats:
        """Notices per trace of good sessions."""
        return self.false_alarms / max(1, self.good_traces)

    def false_bound(self, setting: int, confidence: float) -> float:
        """Return the upper bound of notices per trace of good sessions."""
        return upper_rate(self.sweep.notices[setting, self.good], self.good_traces, confidence)

    @cached_property
    def left(self) -> Floats:
        """Settings x sessions: share of the session still to come at the first notice; 0 without one."""
        share = (self.lengths - self.sweep.first) / np.maximum(1, self.lengths)
        return np.where(self.flagged, share, 0.0)

    @cached_property
    def lead(self) -> Floats:
        """Mean share of a failed session that was still to come at its first notice, 0 where there was none."""
        return self.left[:, self.failed].mean(axis=1) if self.failed.any() else np.zeros(len(self.left))

    def leads(self, setting: int) -> tuple[NDArray[np.int64], Floats]:
        """Return, of the failed sessions found, the traces left and the share left at the first notice."""
        found = self.flagged[setting] & self.failed
        return (self.lengths - self.sweep.first[setting])[found], self.left[setting, found]

    def take(self, sessions: Bools) -> "Evidence":
        """Return the evidence of some sessions."""
        part = Sweep(self.sweep.notices[:, sessions], self.sweep.first[:, sessions])
        return Evidence(part, self.lengths[sessions], self.failed[sessions], self.good[sessions], self.strict)

    def with_sweep(self, sweep: Sweep) -> "Evidence":
        """Return what another sweep of the same sessions says."""
        return replace(self, sweep=sweep)

    def strictly(self) -> "Evidence":
        """Return the evidence as it counts without labels."""
        every = np.ones(len(self.lengths), np.bool_)
        return Evidence(self.sweep, self.lengths, every, every, strict=True)

    def intervals(self, setting: int) -> dict[str, tuple[float, float]]:
        """Return 95 % bootstrap intervals over sessions: recall, precision, false_rate, traces_left, share_left."""
        flagged, failed, good = self.flagged[setting], self.failed, self.good
        notices, lengths = self.sweep.notices[setting], self.lengths
        left, share = lengths - self.sweep.first[setting], self.left[setting]

        def ratio(above: NDArray[Any], below: NDArray[Any]) -> float:
            total = float(below.sum())
            return float(above.sum()) / total if total else float("nan")

        def median(values: NDArray[Any]) -> float:
            return float(np.median(values)) if len(values) else float("nan")

        caught = flagged & failed
        statistics = {
            "recall": lambda at: ratio(caught[at], failed[at]),
            "precision": lambda at: ratio(caught[at], (flagged & (failed | good))[at]),
            "false_rate": lambda at: ratio((notices * good)[at], (lengths * good)[at]),
            "traces_left": lambda at: median(left[at][caught[at]]),
            "share_left": lambda at: median(share[at][caught[at]]),
        }
        return {name: interval(statistic, len(lengths)) for name, statistic in statistics.items()}


def evidence(tracks: Tracks, sweep: Sweep, labels: Mapping[str, bool] | None) -> Evidence:
    """Put a sweep beside the labels; sessions without a label count as neither failed nor good."""
    said: Sequence[bool | None] = [None if labels is None else labels.get(name) for name in tracks.names]
    failed = np.array([label is True for label in said], np.bool_)
    good = np.array([label is False for label in said], np.bool_)
    return Evidence(sweep, tracks.lengths, failed, good)
