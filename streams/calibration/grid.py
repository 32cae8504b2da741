"""Which settings of the gate are tried: a fine grid where the data are few, a coarse one where they are many."""

import itertools
from dataclasses import dataclass
from typing import Final

from streams.core.gate import Gate

FINE_CELLS: Final = 150_000_000
"""Scores times settings that the fine grid may cost."""

OFF_TARGET: Final = 0.0
"""A target that no peak lies under: no stall."""
OFF_DROP: Final = 1.0
"""A drop that no value makes: no regression."""


@dataclass(frozen=True)
class _Axes:
    windows: tuple[int, ...]
    targets: tuple[float, ...]
    gains: tuple[float, ...]
    drops: tuple[float, ...]


_FINE: Final = _Axes(
    (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 75, 100, 150, 200, 300),
    (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    (0.0, 0.01, 0.02, 0.05, 0.1),
    (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, OFF_DROP),
)
_COARSE: Final = _Axes((3, 5, 10, 20, 50, 100, 300), (0.1, 0.3, 0.5, 0.8), (0.01, 0.05), (0.1, 0.15, 0.3, OFF_DROP))


def gates(current: Gate, longest: int, scores: int) -> list[Gate]:
    """Return the settings to try, the current one first.

    longest: traces of the longest session: a longer window never fires.
    """
    fine = _grid(_FINE, longest)
    chosen = fine if scores * len(fine) <= FINE_CELLS else _grid(_COARSE, longest)
    return list(dict.fromkeys([current, *chosen]))


def _grid(axes: _Axes, longest: int) -> list[Gate]:
    windows = [window for window in axes.windows if window < longest] or [axes.windows[0]]
    stalling = itertools.product(windows, axes.targets, axes.gains, axes.drops)
    alone = [Gate(windows[0], OFF_TARGET, *pair) for pair in itertools.product(axes.gains, axes.drops[:-1])]
    return [Gate(*values) for values in stalling] + alone


def words(gate: Gate) -> str:
    """Say a setting in short; what is turned off is said so."""
    stall = f"window {gate.window}, target {gate.target:g}" if gate.target > OFF_TARGET else "stall off"
    drop = f"drop {gate.drop:g}" if gate.drop < OFF_DROP else "regression off"
    return f"{stall}, gain {gate.gain:g}, {drop}"
