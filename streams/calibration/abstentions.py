"""Where a rule cannot work on the data at hand, with the numbers that say so."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from streams.calibration.tracks import Floats
from streams.core.gate import Gate

FEW_LABELS: Final = 5
FEW_SESSIONS: Final = 20
"""To learn a pace line from."""


class Reason(StrEnum):
    """Why a rule cannot work."""

    CONSTANT = "constant_metric"
    DEADLINE_ONLY = "deadline_only"
    NOISE = "movement_goes_down"
    INACTIVE = "regression_inactive"
    OUT_OF_REACH = "target_out_of_reach"
    TOO_SHORT = "sessions_too_short"
    FLAT_GAIN = "gain_zero_on_flat_score"
    ONE_SIDED = "labels_one_sided"
    TOO_FEW = "too_few_sessions"


@dataclass(frozen=True, slots=True)
class Abstention:
    """A rule that cannot work on a metric: why, and a sentence with the numbers."""

    metric: str
    rule: str
    reason: Reason
    text: str


@dataclass(frozen=True, slots=True)
class Shape:
    """How a metric's series move; shares are in [0, 1].

    still: sessions whose score never moves, or in its last tenth only.
    down: of all movement, what goes down.
    drawdown: 95th percentile over sessions of the deepest fall under the peak.
    reaching: sessions whose peak reaches gate_target.
    short: sessions with no more values than gate_window: a stall needs one more.
    flat: steps from trace to trace that change nothing.
    """

    sessions: int
    minimum: float
    maximum: float
    still: float
    down: float
    drawdown: float
    reaching: float
    short: float
    flat: float


def shape(series: Sequence[Floats], gate: Gate) -> Shape:
    """Measure the series of a metric, one a session, at least one."""
    steps = np.concatenate([np.diff(values) for values in series])
    moved = float(np.abs(steps).sum())
    falls = [float((np.maximum.accumulate(values) - values).max()) for values in series]
    count = len(series)
    return Shape(
        sessions=count,
        minimum=min(float(values.min()) for values in series),
        maximum=max(float(values.max()) for values in series),
        still=sum(_is_still(values) for values in series) / count,
        down=float(-steps[steps < 0].sum()) / moved if moved else 0.0,
        drawdown=float(np.quantile(falls, 0.95)),
        reaching=sum(float(values.max()) >= gate.target for values in series) / count,
        short=sum(len(values) <= gate.window for values in series) / count,
        flat=float((steps == 0).mean()) if len(steps) else 0.0,
    )


def _is_still(values: Floats) -> bool:
    before = values[: max(1, math.floor(0.9 * len(values)))]
    return bool(before.min() == before.max())


def abstentions(metric: str, found: Shape, gate: Gate) -> Iterator[Abstention]:
    """Say what cannot work on a tier-1 metric under the present settings."""
    count = found.sessions
    if found.minimum == found.maximum:
        text = f"every value of {count} sessions is {found.minimum:g}: nothing can be told from it"
        yield Abstention(metric, "all", Reason.CONSTANT, text)
        return
    for rule, reason, text in (*_of_stall(found, gate), *_of_regression(found, gate)):
        yield Abstention(metric, rule, reason, text)


_Said = tuple[str, Reason, str]


def _of_stall(found: Shape, gate: Gate) -> Iterator[_Said]:
    count = found.sessions
    if found.still > 0.4:
        text = (
            f"in {found.still:.0%} of {count} sessions the score never moves, or in its last tenth only: "
            "a stall is only a clock here (deadline only)"
        )
        yield "stall", Reason.DEADLINE_ONLY, text
    if found.reaching < 0.2:
        text = (
            f"{found.reaching:.0%} of {count} sessions ever reach gate_target {gate.target:g}: "
            f"it is out of reach, lower it (the highest value is {found.maximum:.3g})"
        )
        yield "stall", Reason.OUT_OF_REACH, text
    if found.short > 0.4:
        text = (
            f"{found.short:.0%} of {count} sessions are not longer than gate_window {gate.window}: "
            "no stall can fire in them"
        )
        yield "stall", Reason.TOO_SHORT, text
    if gate.gain == 0 and found.flat > 0.4:
        text = (
            f"gate_gain is 0 and {found.flat:.0%} of all steps change nothing: standing still counts as a gain, "
            "so a stall cannot fire"
        )
        yield "stall", Reason.FLAT_GAIN, text


def _of_regression(found: Shape, gate: Gate) -> Iterator[_Said]:
    if found.down > 0.4:
        text = f"{found.down:.0%} of all movement goes down: regression fires on noise or penalties"
        yield "regression", Reason.NOISE, text
    elif found.drawdown < gate.drop / 2:
        text = (
            f"95 % of sessions never fall more than {found.drawdown:.3g} under their peak, "
            f"far less than gate_drop {gate.drop:g}: regression is inactive"
        )
        yield "regression", Reason.INACTIVE, text


def one_sided(labels: Mapping[str, bool]) -> Abstention | None:
    """Say when labels are too one-sided to measure anything on the rarer side."""
    failed = sum(labels.values())
    good = len(labels) - failed
    if min(failed, good) >= FEW_LABELS:
        return None
    text = (
        f"{failed} sessions failed and {good} did not: with fewer than {FEW_LABELS} on a side, recall or false alarms "
        "cannot be measured"
    )
    return Abstention("-", "labels", Reason.ONE_SIDED, text)


def too_few(sessions: int, behind: int) -> Abstention | None:
    """Say when there are too few sessions to learn a pace line from; *behind*: how many each of its points needs."""
    if sessions >= FEW_SESSIONS:
        return None
    text = (
        f"{sessions} sessions to learn from: a line needs {behind} that went on at every trace, and a part of them is "
        "left out in turn, so there is hardly a line"
    )
    return Abstention("-", "pace", Reason.TOO_FEW, text)
