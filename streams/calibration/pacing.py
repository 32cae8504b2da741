"""Pace over whole sessions: every setting tried, judged by lines that were not learned from the sessions they judge."""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.calibration.evidence import Evidence
from streams.calibration.lines import Lines, Quantiles, Series, learn
from streams.calibration.sweep import Sweep
from streams.calibration.tracks import Bools, Ints, Tracks
from streams.core.pace import Pace

QUANTILES: Final[Quantiles] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
AFTER: Final = (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 75, 100, 200)
PATIENCE: Final = (1, 2, 3, 5, 8, 12, 20, 30)


class PaceSetting(NamedTuple):
    """What is tried: the quantile of the line, and when lying below it counts."""

    quantile: int
    """Its number among those tried."""
    after: int
    patience: int

    def __str__(self) -> str:
        run = "1 trace" if self.patience == 1 else f"{self.patience} traces in a row"
        return f"quantile {QUANTILES[self.quantile]:g}, {run} after trace {self.after}"


def settings(longest: int) -> tuple[PaceSetting, ...]:
    """Return the settings to try; longest: numbers of the longest line."""
    spans = itertools.product(AFTER, PATIENCE)
    fitting = [(after, patience) for after, patience in spans if after + patience <= max(1, longest)]
    return tuple(PaceSetting(q, *span) for q in range(len(QUANTILES)) for span in fitting)


class Pacing:
    """All sessions with the lines learned from any part of them.

    learned_from: the sessions that lines are learned from: good ones, or without labels all.
    tasks: one a session, where tasks get lines of their own.
    folds: the part that each session was dealt to.
    """

    def __init__(
        self, tracks: Tracks, evidence: Evidence, tasks: Sequence[str | None] | None, folds: NDArray[np.int64]
    ) -> None:
        self._tracks = tracks
        self._evidence = evidence
        self._tasks = tasks
        self._folds = folds
        self._series = [Series.of(tracks, metric) for metric in range(len(tracks.metrics))]
        self.settings = settings(max((len(item.peaks) for item in self._series), default=0))
        self._lines = cache(self._learn)

    @property
    def judged(self) -> Evidence:
        """Every session judged by lines learned without its part."""
        return self._of({fold: self._lines(fold) for fold in self._parts})

    def parts(self, fold: int) -> tuple[Evidence, Evidence]:
        """Return the evidence of the sessions outside a part, and of those in it; neither uses what is in the part.

        Outside, every session is judged by lines learned without its own part as well: so is a choice made among
        settings that have not seen what they are chosen by.
        """
        rest = self._of({other: self._lines(*sorted((fold, other))) for other in self._parts if other != fold})
        held = self._of({fold: self._lines(fold)})
        return rest.take(self._folds != fold), held.take(self._folds == fold)

    def paces(self, setting: PaceSetting) -> tuple[Pace, ...]:
        """Return the lines learned from all sessions, as a file holds them."""
        found = zip(self._series, self._lines(), strict=True)
        return tuple(pace for series, lines in found for pace in lines.paces(series.metric, *setting))

    @property
    def _parts(self) -> list[int]:
        return sorted({int(fold) for fold in self._folds})

    def _learn(self, *without: int) -> list[Lines]:
        used = self._evidence.good & ~np.isin(self._folds, without)
        return [learn(series, used, self._tasks, QUANTILES) for series in self._series]

    def _of(self, lines: dict[int, list[Lines]]) -> Evidence:
        """Judge the sessions of each part by its lines; those of other parts are left without a notice."""
        shape = len(self.settings), len(self._tracks.names)
        notices, first = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        for fold, learned in lines.items():
            sessions = np.flatnonzero(self._folds == fold)
            told = np.array(
                [
                    _told(series, held, self._tasks, sessions, self.settings)
                    for series, held in zip(self._series, learned, strict=True)
                ]
            )
            notices[:, sessions], first[:, sessions] = _notices(told)
        return self._evidence.with_sweep(Sweep(notices, first))


def _told(
    series: Series, lines: Lines, tasks: Sequence[str | None] | None, sessions: Ints, tried: Sequence[PaceSetting]
) -> NDArray[np.int32]:
    """Return settings x sessions: the trace at whose turn pace tells of it, counted from 1; 0 where it does not."""
    found = np.zeros((len(tried), len(sessions)), np.int32)
    wanted: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for at, (quantile, after, patience) in enumerate(tried):
        wanted[quantile, patience].append((at, after))
    for columns, drawn in _groups(lines, tasks, sessions, len(series.peaks)):
        where = sessions[columns]
        peaks, told = series.peaks[:, where], series.told[:, where]
        rows = {q: _runs(peaks < drawn[q][:, None]) for q in range(len(drawn))}
        for (quantile, patience), asked in wanted.items():
            number = _next(rows[quantile] >= patience)
            for at, after in asked:
                # The first run is complete `patience` numbers after the last one that is not judged.
                begin = after + patience - 1
                fires = number[begin] if begin < len(number) else np.full(len(where), len(told))
                found[at, columns] = np.where(
                    fires < len(told), told[np.minimum(fires, len(told) - 1), np.arange(len(where))], 0
                )
    return found


def _groups(
    lines: Lines, tasks: Sequence[str | None] | None, sessions: Ints, numbers: int
) -> list[tuple[Bools, NDArray[np.float64]]]:
    """Return which sessions share lines, with those lines."""
    own = [task if task in lines.by_task else None for task in (tasks[at] for at in sessions)] if tasks else None
    if own is None:
        return [(np.ones(len(sessions), np.bool_), lines.drawn(None, numbers))]
    return [(np.array([key == task for key in own], np.bool_), lines.drawn(task, numbers)) for task in set(own)]


def _runs(below: Bools) -> NDArray[np.int32]:
    """Return, for each number, how many in a row up to it are below."""
    found = np.zeros(below.shape, np.int32)
    for number, row in enumerate(below):
        found[number] = (found[number - 1] + 1) * row if number else row
    return found


def _next(fires: Bools) -> Ints:
    """Return, for each number, the first one from it on that fires; the count of numbers where none does."""
    length = len(fires)
    own = np.where(fires, np.arange(length)[:, None], length)
    return np.asarray(np.minimum.accumulate(own[::-1], axis=0)[::-1], np.int64)


def _notices(told: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return how many turns tell of a metric, of metrics x settings x sessions, and the first of them."""
    ordered = np.sort(told, axis=0)
    new = ordered > 0
    new[1:] &= ordered[1:] != ordered[:-1]
    never = np.iinfo(np.int32).max
    first = np.where(told > 0, told, never).min(axis=0)
    return new.sum(axis=0).astype(np.int32), np.where(first == never, 0, first).astype(np.int32)
