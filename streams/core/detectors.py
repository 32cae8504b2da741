"""Session-lane detectors: breach, relative, trend and percentile, all of one shape.

A detector is a frozen dataclass of settings with `start() -> DetectorState` and
`step(state, value) -> (state, fired)`. Its state is how many values it has seen and a tuple of numbers that only the
detector itself reads, so a new detector needs no change of the stored format.

Example:
    >>> trend = Trend(fast_span=1, slow_span=9, margin=0.05, min_samples=2)
    >>> state, fired = trend.step(trend.start(), 0.8)
    >>> trend.step(state, 0.2)[1]
    True
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from streams.core.model import Condition
from streams.core.rules import Rules


class DetectorState(NamedTuple):
    """What one detector remembers of one session and metric; seen is 0 before it has started."""

    seen: int = 0
    values: tuple[float, ...] = ()


class Detector(Protocol):
    """The one shape."""

    def start(self) -> DetectorState:
        """Return the state before the first value."""

    def step(self, state: DetectorState, value: float) -> tuple[DetectorState, bool]:
        """Fold one value in [0, 1]; returns the new state and whether the condition holds for it."""


def average(previous: float, value: float, span: int) -> float:
    """One step of an exponentially weighted average with a = 2 / (span + 1)."""
    weight = 2 / (span + 1)
    return weight * value + (1 - weight) * previous


@dataclass(frozen=True)
class Absolute:
    """Fires when the value is strictly below the threshold."""

    threshold: float = 0.5

    def start(self) -> DetectorState:
        return DetectorState()

    def step(self, state: DetectorState, value: float) -> tuple[DetectorState, bool]:
        return DetectorState(state.seen + 1), value < self.threshold


@dataclass(frozen=True)
class Trend:
    """Fires when the fast average has fallen below the slow one by more than the margin. State: (fast, slow)."""

    fast_span: int = 3
    slow_span: int = 10
    margin: float = 0.05
    min_samples: int = 4

    def start(self) -> DetectorState:
        return DetectorState()

    def step(self, state: DetectorState, value: float) -> tuple[DetectorState, bool]:
        fast, slow = state.values if state.seen else (value, value)
        if state.seen:
            fast, slow = average(fast, value, self.fast_span), average(slow, value, self.slow_span)
        seen = state.seen + 1
        return DetectorState(seen, (fast, slow)), seen >= self.min_samples and fast < slow - self.margin


@dataclass(frozen=True)
class Relative:
    """Fires when the value itself lies below the slow average by more than the margin. State: (slow,)."""

    slow_span: int = 10
    margin: float = 0.15
    min_samples: int = 4

    def start(self) -> DetectorState:
        return DetectorState()

    def step(self, state: DetectorState, value: float) -> tuple[DetectorState, bool]:
        slow = average(state.values[0], value, self.slow_span) if state.seen else value
        seen = state.seen + 1
        return DetectorState(seen, (slow,)), seen >= self.min_samples and value < slow - self.margin


@dataclass(frozen=True)
class Percentile:
    """Fires when the value lies below a quantile of the last `window` values, itself included. State: those values."""

    window: int = 20
    floor: float = 0.25
    min_samples: int = 4

    def start(self) -> DetectorState:
        return DetectorState()

    def step(self, state: DetectorState, value: float) -> tuple[DetectorState, bool]:
        values = (*state.values, value)[-self.window :]
        enough = len(values) >= min(max(self.min_samples, 2), self.window)
        return DetectorState(state.seen + 1, values), enough and value < quantile(values, self.floor)


def quantile(values: tuple[float, ...], q: float) -> float:
    """Return the *q* quantile of *values* by linear interpolation at position q * (n - 1)."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def session_detectors(rules: Rules, threshold: float) -> tuple[tuple[Condition, Detector, bool], ...]:
    """Return each condition with its detector and whether the rules watch it, in the order in which a report lists them.

    Averages are kept also where they are not watched, so that a detector that is switched on knows the past.
    """
    spans = rules.ewma_slow_span, rules.trend_min_samples
    relative = Relative(spans[0], rules.adaptive_margin_drop, spans[1])
    trend = Trend(rules.ewma_fast_span, spans[0], rules.trend_margin_cross, spans[1])
    chosen: list[tuple[Condition, Detector, bool]] = [
        (Condition.BREACH, Absolute(threshold), True),
        (Condition.RELATIVE, relative, rules.adaptive_threshold),
        (Condition.TREND, trend, rules.enable_trend),
    ]
    if rules.percentile_window > 0:
        percentile = Percentile(rules.percentile_window, rules.percentile_floor, rules.trend_min_samples)
        chosen.append((Condition.PERCENTILE, percentile, True))
    return tuple(chosen)
