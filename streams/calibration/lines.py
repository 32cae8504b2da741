"""Pace lines learned from whole sessions: the quantile of the running peak at each trace number, thinned to be read."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from streams.calibration.tracks import Bools, Floats, Ints, Tracks
from streams.core.pace import Pace, Point
from streams.pace_files import MAX_LINES

BEHIND: Final = 10
"""A line ends where fewer sessions than this went on."""
TASK_SESSIONS: Final = 20
"""A task gets a line of its own from so many sessions on."""
MAX_CELLS: Final = 20_000_000
"""Numbers times sessions looked at: very long sessions are looked at up to there."""
EACH: Final = 10
STEP: Final = 1.25
"""Each number up to EACH may have a point of the line of its own, after that each stretch a quarter longer."""

Quantiles = tuple[float, ...]


@dataclass(frozen=True)
class Series:
    """One metric of all sessions, by the number of its value in the session.

    peaks: numbers x sessions: the highest value so far; NaN after a session's end.
    told: numbers x sessions: the trace, counted from 1, at which the turn of that value ends.
    """

    metric: str
    peaks: Floats
    told: Ints

    @classmethod
    def of(cls, tracks: Tracks, metric: int) -> "Series":
        """Return one metric of the tracks."""
        present = ~np.isnan(tracks.values[metric])
        sessions = len(tracks.names)
        of_session = np.repeat(np.arange(sessions), tracks.lengths)[present]
        counts = np.bincount(of_session, minlength=sessions)
        length = min(int(counts.max(initial=0)), max(100, MAX_CELLS // max(1, sessions)))
        number = np.arange(len(of_session)) - np.repeat(np.cumsum(counts) - counts, counts)
        kept = number < length
        place = number[kept], of_session[kept]
        peaks = np.full((length, sessions), np.nan)
        told = np.zeros((length, sessions), np.int64)
        peaks[place] = tracks.values[metric, present][kept]
        told[place] = _turn_ends(tracks)[present][kept]
        return cls(tracks.metrics[metric], np.maximum.accumulate(peaks, axis=0) if length else peaks, told)


def _turn_ends(tracks: Tracks) -> Ints:
    """Return, for each trace, the trace of its session at which its turn ends, counted from 1."""
    own = np.arange(tracks.traces) - np.repeat(tracks.starts[:-1], tracks.lengths) + 1
    if tracks.ends is None:
        return np.asarray(own, np.int64)
    last = np.where(tracks.ends, np.arange(tracks.traces), tracks.traces)
    closing = np.minimum.accumulate(last[::-1])[::-1]
    # The last turn of a recording may be open: it ends with its session.
    closing = np.minimum(closing, np.repeat(tracks.starts[1:], tracks.lengths) - 1)
    return np.asarray(own[closing], np.int64)


@dataclass(frozen=True)
class Lines:
    """The lines of one metric, one a quantile for each task that has its own, and those for all others (none).

    until: the last number that they say anything of.
    """

    quantiles: Quantiles
    by_task: Mapping[str | None, tuple[tuple[Point, ...], ...]]
    until: int

    def drawn(self, task: str | None, numbers: int) -> Floats:
        """Return quantiles x numbers: the line that a session of *task* is held to; -1 where it says nothing."""
        key = task if task in self.by_task else None
        found = np.full((len(self.quantiles), numbers), -1.0)
        until = min(numbers, self.until)
        for row, points in zip(found, self.by_task[key], strict=True):
            for point, after in pairwise((*points, Point(until + 1, 0.0))):
                row[point.trace - 1 : min(after.trace - 1, until)] = point.line
        return found

    def paces(self, metric: str, quantile: int, after: int, patience: int) -> list[Pace]:
        """Return what a file holds of one quantile; none where no line lies above 0."""
        held = {task: _from(lines[quantile], after + 1) for task, lines in self.by_task.items()}
        if not any(held.values()):
            return []
        share = self.quantiles[quantile]
        # A task without a line of its own would be held to the one for all: so one at 0 is written down.
        return [
            Pace(metric, task, after, patience, points or (Point(1, 0.0),), self.until, share)
            for task, points in held.items()
        ]


def _from(points: tuple[Point, ...], number: int) -> tuple[Point, ...]:
    """Return the line from a number on."""
    before = [point for point in points if point.trace <= number]
    later = tuple(point for point in points if point.trace > number)
    return (before[-1]._replace(trace=number), *later) if before else later


def learn(series: Series, sessions: Bools, tasks: Sequence[str | None] | None, quantiles: Quantiles) -> Lines:
    """Learn lines from some sessions; with *tasks*, one a session, also lines for each task with enough of them.

    Where too few sessions of a task went on, its line goes on as the one for all.
    """
    general, counts = _lines(series.peaks[:, sessions], quantiles)
    by_task: dict[str | None, tuple[tuple[Point, ...], ...]] = {None: _thinned_each(general, counts)}
    for task in _frequent(tasks, sessions) if tasks is not None else ():
        own, own_counts = _lines(
            series.peaks[:, sessions & np.array([item == task for item in tasks or ()])], quantiles
        )
        ends = own.shape[1]
        joined = np.concatenate([own, general[:, ends:]], axis=1)
        by_task[task] = _thinned_each(joined, np.concatenate([own_counts, counts[ends:]]))
    return Lines(quantiles, by_task, general.shape[1])


def _frequent(tasks: Sequence[str | None], sessions: Bools) -> list[str]:
    """Return the tasks with enough sessions, the most frequent ones where a file cannot hold them all."""
    counts = Counter(task for task, used in zip(tasks, sessions, strict=True) if used and task is not None)
    return [task for task, count in counts.most_common(MAX_LINES - 1) if count >= TASK_SESSIONS]


def _lines(peaks: Floats, quantiles: Quantiles) -> tuple[Floats, Ints]:
    """Return quantiles x numbers, up to the last number with enough sessions, and how many stand behind each number."""
    counts = np.asarray((~np.isnan(peaks)).sum(axis=1), np.int64)
    counts = counts[counts >= BEHIND]
    ordered = np.sort(peaks[: len(counts)], axis=1)
    return np.array([_quantile(ordered, counts, q) for q in quantiles]).reshape(len(quantiles), len(counts)), counts


def _thinned_each(lines: Floats, counts: Ints) -> tuple[tuple[Point, ...], ...]:
    return tuple(_thinned(line, counts) for line in lines)


def _quantile(ordered: Floats, counts: Ints, q: float) -> Floats:
    """Return the quantile of each row by linear interpolation at position q * (n - 1); NaN stand at the rows' ends."""
    position = q * (counts - 1)
    low = position.astype(np.int64)
    high = np.minimum(low + 1, counts - 1)
    rows = np.arange(len(counts))
    below, above = ordered[rows, low], ordered[rows, high]
    found: Floats = below + (above - below) * (position - low)
    return found


def _thinned(line: Floats, counts: Ints) -> tuple[Point, ...]:
    """Return few points of hundredths whose steps nowhere lie above the line."""
    points: list[Point] = []
    for first, after in pairwise(_stretches(len(line))):
        # Hundredths, rounded down: 0.29 is stored a little below, and shall stay 0.29.
        value = math.floor(float(line[first:after].min()) * 100 + 1e-9) / 100
        point = Point(first + 1, value, int(counts[first:after].min()))
        if points and points[-1].line == value:
            points[-1] = points[-1]._replace(sessions=min(points[-1].sessions, point.sessions))
        elif points or value > 0:
            points.append(point)
    return tuple(points)


def _stretches(length: int) -> list[int]:
    """Return where the stretches that share a point begin, and where the last one ends; from 0."""
    found = list(range(min(length, EACH)))
    while found and found[-1] < length:
        step = 1 if found[-1] < EACH else math.ceil((found[-1]) * (STEP - 1))
        found.append(min(length, found[-1] + step))
    return found
