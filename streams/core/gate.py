"""The trajectory gate: is this series of scores climbing, stalled, or falling back?

Example:
    >>> gate = Gate(window=2)
    >>> state = gate.start()
    >>> for value in (0.3, 0.3, 0.3):
    ...     state, fired = gate.step(state, value)
    >>> state, fired
    (GateState(peak=0.3, traces_since_gain=0, seen=3), (<Condition.STALL: 'stall'>,))
"""

from dataclasses import dataclass
from typing import NamedTuple

from streams.core.model import Condition

NOTHING: tuple[Condition, ...] = ()


class GateState(NamedTuple):
    """What the gate remembers of one session and metric."""

    peak: float = 0.0
    """Highest value that counted as a gain, in [0, 1]; means nothing while seen is 0."""
    traces_since_gain: int = 0
    """Values since the last gain or the last time the gate fired."""
    seen: int = 0
    """Values folded; 0 means not started."""


@dataclass(frozen=True)
class Gate:
    """Fires `stall` after `window` values without a gain below `target`, `regression` on a drop under the peak."""

    window: int = 5
    """Values without a gain that make a stall, >= 1 (less counts as 1)."""
    target: float = 0.5
    """A peak at or above this never stalls, in [0, 1]."""
    gain: float = 0.02
    """A value must exceed the peak by this to be a gain, >= 0."""
    drop: float = 0.15
    """A value further than this under the peak is a regression, >= 0."""

    def start(self) -> GateState:
        return GateState()

    def step(self, state: GateState, value: float) -> tuple[GateState, tuple[Condition, ...]]:
        """Fold one value in [0, 1]; returns the new state and what fired, `stall` before `regression`."""
        peak, since, seen = state
        if seen == 0 or value >= peak + self.gain:
            return GateState(value if seen == 0 or value > peak else peak, 0, seen + 1), NOTHING
        since += 1
        stalled = since >= max(1, self.window) and peak < self.target
        fell = value < peak - self.drop
        if not (stalled or fell):
            return GateState(peak, since, seen + 1), NOTHING
        fired = (Condition.STALL,) * stalled + (Condition.REGRESSION,) * fell
        return GateState(peak, 0, seen + 1), fired
