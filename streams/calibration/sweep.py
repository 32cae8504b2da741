"""The trajectory gate over many sessions and settings at once: the same folds as `Gate.step`, in arrays.

Settings are rows and sessions columns; the loop goes over the traces. The peak depends on the gain only, a fall on gain
and drop, being under the target on gain and target: each is worked out once for the settings that share it, and only
the count of traces since a gain is kept for every setting.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streams.calibration.tracks import Tracks
from streams.core.gate import Gate

CHUNK: Final = 256
CHUNK_CELLS: Final = 2_000_000
STALL, REGRESSION = 1, 2
"""Bits of what fired: two for each metric, the first metric's lowest."""

Counts = NDArray[np.int32]
Fired = Callable[[NDArray[np.int64], int, NDArray[Any]], None]
"""Gets sessions, a trace number from 0, and the bits that fired as settings x sessions."""


@dataclass(frozen=True)
class Sweep:
    """What each setting would have done; both are settings x sessions."""

    notices: Counts
    """Notices: turns with a finding that the turn before did not have."""
    first: Counts
    """The trace of the first notice, counted from 1; 0 without one."""


def sweep(tracks: Tracks, gates: Sequence[Gate], workers: int = 2) -> Sweep:
    """Run every gate over every session."""
    shape = len(gates), len(tracks.names)
    found = Sweep(np.zeros(shape, np.int32), np.zeros(shape, np.int32))

    def run(sessions: NDArray[np.int64]) -> None:
        notices, first = _notices(tracks, gates, sessions)
        found.notices[:, sessions] = notices
        found.first[:, sessions] = first

    _each_chunk(tracks, run, workers)
    return found


def firings(tracks: Tracks, gates: Sequence[Gate]) -> NDArray[Any]:
    """Return the bits that fired at each trace, as settings x traces: for a close look, and for tests."""
    found = np.zeros((len(gates), tracks.traces), _bits(tracks))

    def note(sessions: NDArray[np.int64], trace: int, fired: NDArray[Any]) -> None:
        found[:, tracks.starts[sessions] + trace] = fired

    _each_chunk(tracks, lambda sessions: _fold(tracks, gates, sessions, note), 1)
    return found


def _each_chunk(tracks: Tracks, run: Callable[[NDArray[np.int64]], None], workers: int) -> None:
    """Run sessions in chunks of about equal length, the longest first, so that those that have ended fall away."""
    order = np.argsort(-tracks.lengths, kind="stable")
    longest = int(tracks.lengths.max(initial=1))
    size = max(1, min(CHUNK, CHUNK_CELLS // max(1, longest)))
    chunks = [order[at : at + size] for at in range(0, len(order), size)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, chunks))


def _notices(tracks: Tracks, gates: Sequence[Gate], sessions: NDArray[np.int64]) -> tuple[Counts, Counts]:
    shape = len(gates), len(sessions)
    kind = _bits(tracks)
    last, held = np.zeros(shape, kind), np.zeros(shape, kind)
    notices, waited = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    silent = np.ones(shape, np.bool_)
    ends = tracks.ends

    def note(active: NDArray[np.int64], trace: int, fired: NDArray[Any]) -> None:
        cut = np.s_[:, : len(active)]
        waited[cut] += silent[cut]
        if ends is None:
            told = (fired & ~last[cut]) != 0
            last[cut] = fired
        else:
            held[cut] |= fired
            closed = ends[tracks.starts[active] + trace]
            told = ((held[cut] & ~last[cut]) != 0) & closed
            last[cut] = np.where(closed, held[cut], last[cut])
            held[cut] = np.where(closed, 0, held[cut])
        notices[cut] += told
        silent[cut] &= ~told

    _fold(tracks, gates, sessions, note)
    return notices, np.where(silent, 0, waited).astype(np.int32)


@dataclass
class _Plan:
    """Which settings share what: each array leads from a setting to its row among those that are worked out once."""

    gains: NDArray[np.float64]
    of_gain: NDArray[np.int64]
    drops: NDArray[np.float64]
    drop_gain: NDArray[np.int64]
    of_drop: NDArray[np.int64]
    targets: NDArray[np.float64]
    target_gain: NDArray[np.int64]
    of_target: NDArray[np.int64]
    windows: NDArray[np.int32]


def _plan(gates: Sequence[Gate]) -> _Plan:
    gains, of_gain = np.unique([gate.gain for gate in gates], return_inverse=True)
    drops, of_drop = np.unique(
        [(at, gate.drop) for at, gate in zip(of_gain, gates, strict=True)], axis=0, return_inverse=True
    )
    targets, of_target = np.unique(
        [(at, gate.target) for at, gate in zip(of_gain, gates, strict=True)], axis=0, return_inverse=True
    )
    return _Plan(
        gains[:, None],
        of_gain,
        drops[:, 1:],
        drops[:, 0].astype(np.int64),
        of_drop.ravel(),
        targets[:, 1:],
        targets[:, 0].astype(np.int64),
        of_target.ravel(),
        np.array([[min(max(1, gate.window), 2**31 - 1)] for gate in gates], np.int32),
    )


class _Metric:
    """The gates of one metric: peaks by gain, and the count of traces since a gain by setting."""

    def __init__(self, plan: _Plan, values: NDArray[np.float64], shift: int, kind: Any) -> None:
        self._plan = plan
        self._values = values
        self._kind = kind
        self._stall = kind(STALL << shift)
        self._fall = kind(REGRESSION << shift)
        sessions = values.shape[1]
        self._peak = np.full((len(plan.gains), sessions), -np.inf)
        # As narrow as the longest session allows: this is where the time goes.
        counter = np.int16 if values.shape[0] < 2**15 else np.int32
        self._since = np.zeros((len(plan.of_gain), sessions), counter)
        self._windows = np.minimum(plan.windows, np.iinfo(counter).max).astype(counter)

    def step(self, trace: int, active: int) -> NDArray[Any]:
        """Fold the values of one trace; returns the bits that fired, settings x sessions still active."""
        plan, value = self._plan, self._values[trace, :active]
        present = ~np.isnan(value)
        peak = self._peak[:, :active]
        gain = value >= peak + plan.gains
        np.copyto(peak, value, where=gain & (value > peak))
        waits = (present & ~gain).astype(self._since.dtype)
        under = peak[plan.drop_gain]
        fell = np.where((value < under - plan.drops) & ~gain[plan.drop_gain], self._fall, self._kind(0))
        low = np.where((peak[plan.target_gain] < plan.targets) & present, self._stall, self._kind(0))
        since = self._since[:, :active]
        since += present
        since *= (waits if present.all() else np.where(present, waits, 1).astype(self._since.dtype))[plan.of_gain]
        fired = (since >= self._windows) * low[plan.of_target]
        # A gain has set the count to 0, so that no window is reached.
        fired |= fell[plan.of_drop]
        since *= fired == 0
        found: NDArray[Any] = fired
        return found


def _fold(tracks: Tracks, gates: Sequence[Gate], sessions: NDArray[np.int64], note: Fired) -> None:
    lengths = tracks.lengths[sessions]
    plan, kind = _plan(gates), _bits(tracks)
    padded = _padded(tracks, sessions)
    metrics = [_Metric(plan, values, 2 * at, kind) for at, values in enumerate(padded)]
    for trace in range(int(lengths.max(initial=0))):
        active = int(np.searchsorted(-lengths, -trace))
        fired = metrics[0].step(trace, active)
        for metric in metrics[1:]:
            fired |= metric.step(trace, active)
        note(sessions[:active], trace, fired)


def _padded(tracks: Tracks, sessions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return metrics x traces x sessions, NaN after a session's end."""
    lengths = tracks.lengths[sessions]
    found = np.full((len(tracks.metrics), int(lengths.max(initial=0)), len(sessions)), np.nan)
    for column, session in enumerate(sessions):
        start = tracks.starts[session]
        found[:, : lengths[column], column] = tracks.values[:, start : start + lengths[column]]
    return found


def _bits(tracks: Tracks) -> Any:
    return np.uint8 if len(tracks.metrics) <= 4 else np.uint32
