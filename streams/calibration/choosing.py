"""Choosing a setting within a budget of false alarms, by cross-validation over sessions; or saying why none."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streams.calibration.bounds import upper_count, upper_rate
from streams.calibration.evidence import Evidence
from streams.calibration.tracks import Bools
from streams.core.ids import short_hash

FOLDS: Final = 5
Parts = Callable[[int], tuple[Evidence, Evidence]]
"""Gets the number of a part of the sessions; returns the evidence of all others, and of the part."""


class Verdict(StrEnum):
    """How the choice ended."""

    CHOSEN = "chosen"
    """A setting whose bound lies within the budget, also on sessions it was not chosen by."""
    ONE_SIDED = "labels_one_sided"
    """Too few failed or too few good sessions to measure anything."""
    OVER_BUDGET = "over_budget"
    """No setting that finds a failed session stays within the budget, even as it was counted."""
    TOO_FEW = "too_few_to_tell"
    """Settings stay within the budget as counted, but there are too few good traces to be sure."""
    NOT_HELD_OUT = "not_on_held_out_sessions"
    """What is chosen on one part of the sessions exceeds the budget on the other."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What the settings chosen without a fold did on that fold, all folds together."""

    false_alarms: int
    good_traces: int
    bound: float
    found: int
    failed: int
    lead: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """The outcome of a choice.

    setting: the number of the setting; with a refusal, the best as counted, or none.
    bound: the upper bound of its false alarms per trace.
    supported: the lowest bound that these labels could support for any setting.
    held_out: none where cross-validation found no setting to try.
    strict: there were no labels, and every alarm counted as false.
    """

    verdict: Verdict
    budget: float
    confidence: float
    setting: int | None
    bound: float
    supported: float
    held_out: HeldOut | None
    strict: bool = False

    @property
    def ok(self) -> bool:
        return self.verdict is Verdict.CHOSEN


def choose(
    evidence: Evidence,
    names: Sequence[str],
    budget: float,
    confidence: float,
    few: int,
    parts: Parts | None = None,
) -> Chosen:
    """Pick the setting with the best recall, then lead, whose false alarms per trace of good sessions stay within *budget*.

    Within it is a setting whose upper bound at *confidence* is; and the choice, made on four fifths of the sessions,
    must stay within it as counted on the fifth. *few* labels on a side are too few. *parts* is for what is learned
    from sessions itself; without it the evidence is cut.
    """
    parts = parts or cut(evidence, names)
    supported = upper_count(0, confidence) / evidence.good_traces if evidence.good_traces else float("inf")
    counted = best(evidence, evidence.false_rate <= budget) if evidence.two_sided else None

    def refused(verdict: Verdict, held: HeldOut | None = None) -> Chosen:
        bound = evidence.false_bound(counted, confidence) if counted is not None else float("nan")
        return Chosen(verdict, budget, confidence, counted, bound, supported, held, evidence.strict)

    if min(int(evidence.failed.sum()), int(evidence.good.sum())) < few:
        return refused(Verdict.ONE_SIDED)
    if counted is None:
        return refused(Verdict.OVER_BUDGET)
    setting = _within(evidence, budget, budget, confidence)
    if setting is None:
        return refused(Verdict.TOO_FEW, held_out(parts, budget, confidence, proven=False))
    held = held_out(parts, budget, confidence, proven=True)
    if held.false_alarms > budget * held.good_traces:
        return refused(Verdict.NOT_HELD_OUT, held)
    bound = evidence.false_bound(setting, confidence)
    return Chosen(Verdict.CHOSEN, budget, confidence, setting, bound, supported, held, evidence.strict)


def _within(evidence: Evidence, budget: float, room: float, confidence: float) -> int | None:
    """Return the best setting within the budget as counted whose bound lies within the room."""
    for setting in _best_first(evidence, evidence.false_rate <= budget):
        if evidence.false_bound(setting, confidence) <= room:
            return setting
    return None


def best(evidence: Evidence, allowed: Bools) -> int | None:
    """Return the best of the allowed settings, or none where none of them finds anything."""
    return next(_best_first(evidence, allowed), None)


def _best_first(evidence: Evidence, allowed: Bools) -> Iterator[int]:
    """Yield the allowed settings that find anything: best recall first, then lead, then fewest notices."""
    allowed = allowed & (evidence.tp > 0)
    order = np.lexsort((evidence.per_1000, -evidence.lead.round(9), -evidence.recall))
    return (int(setting) for setting in order if allowed[setting])


def held_out(parts: Parts, budget: float, confidence: float, *, proven: bool) -> HeldOut:
    """Choose without each part in turn and count what that choice does on the part.

    proven: choose by bounds, as `choose` does; else by the false alarms as counted.
    """
    alarms: list[int] = []
    traces = found = failed = 0
    leads: list[float] = []
    for number in range(FOLDS):
        rest, part = parts(number)
        # Four fifths of the data cannot support what all of them just can: what the bound may be grows as they shrink.
        room = budget * (rest.good_traces + part.good_traces) / max(1, rest.good_traces)
        setting = _within(rest, budget, room, confidence) if proven else best(rest, rest.false_rate <= budget)
        failed += int(part.failed.sum())
        traces += part.good_traces
        if setting is None:
            alarms += [0] * int(part.good.sum())
            continue
        alarms += part.sweep.notices[setting, part.good].tolist()
        found += int(part.tp[setting])
        leads += part.leads(setting)[1].tolist()
    bound = upper_rate(np.array(alarms, np.int64), traces, confidence)
    return HeldOut(sum(alarms), traces, bound, found, failed, float(np.median(leads)) if leads else 0.0)


def cut(evidence: Evidence, names: Sequence[str]) -> Parts:
    """Return the parts of evidence whose settings were not learned from the sessions."""
    dealt = folds(evidence.failed, names)
    return lambda number: (evidence.take(dealt != number), evidence.take(dealt == number))


def folds(failed: Bools, names: Sequence[str]) -> NDArray[np.int64]:
    """Deal sessions to parts by a hash of their names, failed ones and all others each evenly."""
    order = sorted(range(len(names)), key=lambda at: short_hash(f"fold/{names[at]}"))
    found = np.zeros(len(names), np.int64)
    dealt = {True: 0, False: 0}
    for at in order:
        label = bool(failed[at])
        found[at] = dealt[label] % FOLDS
        dealt[label] += 1
    return found
