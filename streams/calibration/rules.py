"""Rules over one metric's series beside the gate: trend, relative, breach, percentile, and a plain deadline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streams.calibration.sweep import Sweep
from streams.calibration.tracks import Tracks
from streams.core.detectors import Percentile
from streams.core.rules import Rules

MARGINS: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
THRESHOLDS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PERCENTILES: Final = ((10, 0.1), (20, 0.1), (20, 0.25), (50, 0.05), (50, 0.25))
PERCENTILE_SCORES: Final = 300_000
"""More than so many scores, and the percentile rule, which is stepped, is left out."""


Settings = tuple[tuple[str, float], ...]
_Found = tuple[str, list[Settings], NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of one metric with its settings, by the names that `Settings` gives them."""

    name: str
    settings: Settings

    def __str__(self) -> str:
        return f"{self.name} " + ", ".join(f"{name} {value:g}" for name, value in self.settings)


def sweep_rules(tracks: Tracks, rules: Rules) -> tuple[list[Rule], Sweep]:
    """Run trend, relative, breach, percentile and deadline over one metric's series."""
    made: list[Rule] = []
    fired: list[tuple[Any, Any]] = []
    for kind, settings, notices, first in _all(tracks, rules):
        made += [Rule(kind, item) for item in settings]
        fired.append((notices, first))
    return made, Sweep(np.concatenate([n for n, _ in fired]), np.concatenate([f for _, f in fired]))


def _all(tracks: Tracks, rules: Rules) -> Iterator[_Found]:
    padded = _padded(tracks)
    fast, slow = _averages(padded, rules.ewma_fast_span), _averages(padded, rules.ewma_slow_span)
    enough = (np.arange(1, len(padded) + 1) >= rules.trend_min_samples)[:, None]
    yield (
        "trend",
        _named("trend_margin_cross", MARGINS),
        *_each(((fast < slow - margin) & enough for margin in MARGINS), padded),
    )
    yield (
        "relative",
        _named("adaptive_margin_drop", MARGINS),
        *_each(((padded < slow - margin) & enough for margin in MARGINS), padded),
    )
    yield "breach", _named("threshold", THRESHOLDS), *_each((padded < line for line in THRESHOLDS), padded)
    if tracks.traces <= PERCENTILE_SCORES:
        names: list[Settings] = [
            (("percentile_window", float(window)), ("percentile_floor", floor)) for window, floor in PERCENTILES
        ]
        yield (
            "percentile",
            names,
            *_each((_percentile(tracks, padded, window, floor, rules) for window, floor in PERCENTILES), padded),
        )
    ages = sorted({int(age) for age in np.unique(np.geomspace(2, max(2, len(padded)), 24))})
    first = np.where(tracks.lengths >= np.array(ages)[:, None], np.array(ages)[:, None], 0).astype(np.int32)
    yield "deadline", _named("traces", ages), (first > 0).astype(np.int32), first


def _padded(tracks: Tracks) -> NDArray[np.float64]:
    """Return steps x sessions, NaN after a session's end."""
    found = np.full((int(tracks.lengths.max(initial=0)), len(tracks.names)), np.nan)
    for session in range(len(tracks.names)):
        values = tracks.of(session)
        found[: len(values), session] = values
    return found


def _averages(padded: NDArray[np.float64], span: int) -> NDArray[np.float64]:
    """Return the exponentially weighted averages after each value, in the core's order of operations."""
    weight = 2 / (span + 1)
    found = np.empty_like(padded)
    for step, values in enumerate(padded):
        found[step] = values if step == 0 else weight * values + (1 - weight) * found[step - 1]
    return found


def _percentile(
    tracks: Tracks, padded: NDArray[np.float64], window: int, floor: float, rules: Rules
) -> NDArray[np.bool_]:
    """Return steps x sessions; one setting, stepped as the core does."""
    detector = Percentile(window, floor, rules.trend_min_samples)
    found = np.zeros(padded.shape, np.bool_)
    for session in range(len(tracks.names)):
        state = detector.start()
        for step, value in enumerate(tracks.of(session)):
            state, found[step, session] = detector.step(state, float(value))
    return found


def _each(
    settings: Iterator[NDArray[np.bool_]], padded: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Count, of each setting's steps x sessions, when a finding begins; one that goes on is told once."""
    notices, first = [], []
    for found in settings:
        fired = found & ~np.isnan(padded)
        told = fired.copy()
        told[1:] &= ~fired[:-1]
        notices.append(told.sum(axis=0))
        first.append(np.where(told.any(axis=0), told.argmax(axis=0) + 1, 0) if len(told) else notices[-1])
    return np.array(notices, np.int32), np.array(first, np.int32)


def _named(name: str, values: Sequence[float]) -> list[Settings]:
    return [((name, float(value)),) for value in values]
