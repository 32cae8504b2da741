"""How rare is rare enough to be known: upper bounds of a rate that was counted, and intervals by resampling."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

EXACT_UP_TO: Final = 500
RESAMPLES: Final = 1000


def upper_count(count: float, confidence: float = 0.95) -> float:
    """Return the largest mean that still gives *count* or fewer events with probability 1 - *confidence*.

    The exact one-sided bound of a Poisson mean (Garwood 1936); 3.0 for none at 0.95, the rule of three. A count that
    is no whole number, or large, is approximated (Wilson and Hilferty 1931).
    """
    if count == int(count) and count <= EXACT_UP_TO:
        low, high = count, count + 10 * math.sqrt(count + 10) + 10
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _at_most(int(count), middle) > 1 - confidence else (low, middle)
        return high
    degrees = 2 * (count + 1)
    quantile = math.sqrt(2) * _inverse_error(2 * confidence - 1)
    return float(degrees / 2 * (1 - 2 / (9 * degrees) + quantile * math.sqrt(2 / (9 * degrees))) ** 3)


def upper_rate(by_session: NDArray[np.integer], traces: int, confidence: float = 0.95) -> float:
    """Return the upper bound of events per trace, from each session's count of them.

    Events of one session come together, so they tell less than as many independent ones: the bound counts clusters of
    the size that is seen.
    """
    if traces <= 0:
        return math.inf
    total = int(by_session.sum())
    cluster = float((by_session.astype(np.int64) ** 2).sum() / total) if total else 1.0
    return cluster * upper_count(math.ceil(total / cluster), confidence) / traces


def interval(
    statistic: Callable[[NDArray[np.int64]], float], sessions: int, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a statistic of session numbers; NaN values are left out."""
    chance = np.random.default_rng(seed)
    found = [statistic(chance.integers(0, sessions, sessions)) for _ in range(resamples)] if sessions else []
    kept = [value for value in found if not math.isnan(value)]
    if not kept:
        return math.nan, math.nan
    low, high = np.quantile(kept, (0.025, 0.975))
    return float(low), float(high)


def _at_most(count: int, mean: float) -> float:
    """Return the probability of *count* or fewer Poisson events."""
    return (
        math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count + 1)) if mean else 1.0
    )


def _inverse_error(value: float) -> float:
    """Return the inverse of the error function, by bisection."""
    low, high = -6.0, 6.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < value else (low, middle)
    return low
