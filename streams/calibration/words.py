"""What was chosen or refused, in sentences: the same on the screen, in the settings file and in the report."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from streams.calibration.calibration import CURRENT, Calibration, GateFinding, PaceFinding
from streams.calibration.choosing import FOLDS, Chosen, HeldOut, Verdict
from streams.calibration.evidence import Evidence
from streams.calibration.grid import words


def per_trace(rate: float) -> str:
    """Say a rate as one in so many traces."""
    if rate == 0:
        return "0"
    return "any rate" if math.isinf(rate) else f"1/{round(1 / rate):,}" if rate <= 1 else f"{rate:.3g} a trace"


@dataclass(frozen=True)
class _Nouns:
    """How alarms are spoken of, with labels and without."""

    alarm: str
    alarms_per_trace: str
    traces: str
    good_traces: str
    found: str


_LABELED: Final = _Nouns(
    alarm="false alarm",
    alarms_per_trace="false alarms per trace of good sessions",
    traces="traces of good sessions",
    good_traces="good traces",
    found="failed sessions found",
)
_STRICT: Final = _Nouns(
    alarm="alarm",
    alarms_per_trace="alarms per trace, each counted as false",
    traces="traces",
    good_traces="traces",
    found="sessions spoken of",
)


def _nouns(*, strict: bool) -> _Nouns:
    return _STRICT if strict else _LABELED


def verdict(chosen: Chosen) -> str:
    """Say in a sentence how the choice ended, and if it was refused, why."""
    budget, sure = per_trace(chosen.budget), f"{chosen.confidence:.0%}"
    nouns = _nouns(strict=chosen.strict)
    match chosen.verdict:
        case Verdict.CHOSEN:
            return (
                f"chosen: at most {budget} {nouns.alarms_per_trace} (upper bound at {sure}), and as counted also on "
                "sessions that it was not chosen by"
            )
        case Verdict.ONE_SIDED:
            few = "sessions" if chosen.strict else "failed or too few good sessions"
            return f"refused: too few {few} to measure recall and false alarms"
        case Verdict.OVER_BUDGET:
            what = "speaks of any session" if chosen.strict else "finds a failed session"
            return (
                f"refused: no setting that {what} raises as few as {budget} {nouns.alarms_per_trace}, even as counted"
            )
        case Verdict.TOO_FEW:
            needed = math.ceil(-math.log(1 - chosen.confidence) / chosen.budget)
            return (
                f"refused: too few {nouns.good_traces} to tell {budget}. A setting without a single {nouns.alarm} would "
                f"prove no better than {per_trace(chosen.supported)} (upper bound at {sure}); {needed:,} {nouns.traces} "
                f"without any {nouns.alarm} are needed"
            )
        case Verdict.NOT_HELD_OUT:
            what = "sessions" if chosen.strict else "labels"
            return (
                f"refused: what is chosen on {FOLDS - 1} of {FOLDS} parts of the sessions raises more than {budget} "
                f"on the part left out, so the {what} do not tell settings apart well enough"
            )


def held_out(found: HeldOut, *, strict: bool = False) -> str:
    """Say what cross-validation found."""
    nouns = _nouns(strict=strict)
    alarms = f"{found.false_alarms} {nouns.alarm}s in {found.good_traces:,} {nouns.good_traces}"
    return (
        f"cross-validated over {FOLDS} parts of the sessions: {found.found} of {found.failed} {nouns.found}, "
        f"{alarms} (at most {per_trace(found.bound)}), median {found.lead:.0%} of the session left"
    )


def setting(gate: GateFinding, number: int, confidence: float = 0.95) -> str:
    """Say in a sentence what a setting of the gate would have meant."""
    return f"{words(gate.gates[number])}: {meant(gate.evidence, number, confidence)}"


def meant(found: Evidence, number: int, confidence: float = 0.95) -> str:
    """Say what a setting would have meant."""
    said = f"{found.per_1000[number]:.1f} notices per 1,000 traces"
    if not found.labeled:
        flagged = int(found.flagged[number].sum())
        return f"{said} in {flagged} of {len(found.lengths)} sessions"
    nouns = _nouns(strict=found.strict)
    _, share = found.leads(number)
    left = (
        f", median {sorted(share)[len(share) // 2]:.0%} of the session left at the first notice" if len(share) else ""
    )
    rates = "" if found.strict else f" (recall {found.recall[number]:.3f}, precision {found.precision[number]:.3f})"
    return (
        f"{said}; {found.tp[number]} of {int(found.failed.sum())} {nouns.found}{rates}{left}; "
        f"{found.false_alarms[number]} {nouns.alarm}s in {found.good_traces:,} {nouns.traces}, "
        f"at most {per_trace(found.false_bound(number, confidence))}"
    )


def intervals(gate: GateFinding, number: int) -> str:
    """Say the bootstrap intervals of a setting."""
    found = gate.evidence.intervals(number)
    said = [
        f"recall {_span(found['recall'], 3)}",
        f"precision {_span(found['precision'], 3)}",
        f"false alarms per 1,000 good traces {_span(found['false_rate'], 1, 1000)}",
        f"traces left {_span(found['traces_left'], 0)}",
        f"share left {_span(found['share_left'], 2)}",
    ]
    return "95 % bootstrap intervals over sessions: " + ", ".join(said)


def _span(found: tuple[float, float], digits: int, times: float = 1) -> str:
    low, high = found
    return "unknown" if math.isnan(low) else f"{low * times:.{digits}f} to {high * times:.{digits}f}"


def evidence(calibration: Calibration, source: str) -> list[str]:
    """Return the evidence for the chosen setting, a paragraph each, for a settings file."""
    gate = calibration.gate
    assert gate is not None
    assert gate.chosen is not None
    assert gate.chosen.setting is not None
    labels = calibration.labels or {}
    learned = (
        f"Gate settings from `tgate calibrate`, learned from {source}: {calibration.sessions} sessions, "
        f"{gate.tracks.traces:,} traces; {sum(labels.values())} failed, {len(labels) - sum(labels.values())} did not."
    )
    said = [
        learned,
        f"{_capital(verdict(gate.chosen))}.",
        "",
        f"This setting: {setting(gate, gate.chosen.setting, gate.chosen.confidence)}.",
        f"{intervals(gate, gate.chosen.setting)}.",
    ]
    if gate.chosen.held_out is not None:
        said.append(f"{_capital(held_out(gate.chosen.held_out))}.")
    said.append(f"The setting in force: {setting(gate, CURRENT, gate.chosen.confidence)}.")
    said += [f"Warning, {item.metric}, {item.rule}: {item.text}." for item in calibration.abstentions]
    return said


def pace_evidence(calibration: Calibration, source: str) -> list[str]:
    """Return the evidence for the pace lines, a paragraph each, for their file."""
    found = calibration.pace
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.setting is not None
    strict, confidence = found.evidence.strict, found.chosen.confidence
    who = f"all {found.learned_from} sessions" if strict else f"the {found.learned_from} good sessions"
    said = [
        (
            f"Pace lines from `tgate calibrate`, learned from {source}: what {who} had reached, at its highest, by each trace. "
            "Switch it on with the setting pace_file."
        ),
        f"{_capital(verdict(found.chosen))}.",
        "",
        (
            f"This setting, on sessions that its lines were not learned from: {found.settings[found.chosen.setting]}: "
            f"{meant(found.evidence, found.chosen.setting, confidence)}."
        ),
    ]
    if found.chosen.held_out is not None:
        said.append(f"{_capital(held_out(found.chosen.held_out, strict=strict))}.")
    said.append(f"{_capital(overlap(found))}.")
    return said


def overlap(found: PaceFinding) -> str:
    """Say which sessions only one of pace and the gate speaks of, each at its best within the budget."""
    pace, gate = (
        np.zeros(len(found.evidence.lengths), np.bool_)
        if held.setting is None
        else held.evidence.flagged[held.setting] & held.evidence.failed
        for held in (found.pace, found.gate)
    )
    what = "sessions" if found.evidence.strict else "failed sessions"
    return (
        f"of {int(found.evidence.failed.sum())} {what}, at a budget of {per_trace(found.rate)} as counted, both pace and "
        f"the gate find {int((pace & gate).sum())}, only pace {int((pace & ~gate).sum())}, "
        f"only the gate {int((gate & ~pace).sum())}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
