"""What was chosen or refused, in sentences: the same on the screen, in the settings file and in the report."""

import math

from streams.calibration.calibration import CURRENT, Calibration, GateFinding
from streams.calibration.choosing import FOLDS, Chosen, HeldOut, Verdict
from streams.calibration.grid import words


def per_trace(rate: float) -> str:
    """Say a rate as one in so many traces."""
    if rate == 0:
        return "0"
    return "any rate" if math.isinf(rate) else f"1/{round(1 / rate):,}" if rate <= 1 else f"{rate:.3g} a trace"


def verdict(chosen: Chosen) -> str:
    """Say in a sentence how the choice ended, and if it was refused, why."""
    budget, sure = per_trace(chosen.budget), f"{chosen.confidence:.0%}"
    match chosen.verdict:
        case Verdict.CHOSEN:
            return (
                f"chosen: at most {budget} false alarms per trace of good sessions (upper bound at {sure}), and as "
                "counted also on sessions that it was not chosen by"
            )
        case Verdict.ONE_SIDED:
            return "refused: too few failed or too few good sessions to measure recall and false alarms"
        case Verdict.OVER_BUDGET:
            return (
                f"refused: no setting that finds a failed session raises as few as {budget} false alarms per trace "
                "of good sessions, even as counted"
            )
        case Verdict.TOO_FEW:
            return (
                f"refused: too few good traces to tell {budget}. A setting without a single false alarm would prove no "
                f"better than {per_trace(chosen.supported)} (upper bound at {sure}); {math.ceil(-_log(chosen) / chosen.budget):,} "
                "traces of good sessions without a false alarm are needed"
            )
        case Verdict.NOT_HELD_OUT:
            return (
                f"refused: what is chosen on {FOLDS - 1} of {FOLDS} parts of the sessions raises more than {budget} "
                "on the part left out, so the labels do not tell settings apart well enough"
            )


def _log(chosen: Chosen) -> float:
    return math.log(1 - chosen.confidence)


def held_out(found: HeldOut) -> str:
    """Say what cross-validation found."""
    alarms = f"{found.false_alarms} false alarms in {found.good_traces:,} good traces"
    return (
        f"cross-validated over {FOLDS} parts of the sessions: {found.found} of {found.failed} failed sessions found, "
        f"{alarms} (at most {per_trace(found.bound)}), median {found.lead:.0%} of the session left"
    )


def setting(gate: GateFinding, number: int, confidence: float = 0.95) -> str:
    """Say in a sentence what a setting would have meant."""
    found = gate.evidence
    said = f"{words(gate.gates[number])}: {found.per_1000[number]:.1f} notices per 1,000 traces"
    if not found.labeled:
        flagged = int(found.flagged[number].sum())
        return f"{said} in {flagged} of {len(found.lengths)} sessions"
    _, share = found.leads(number)
    left = (
        f", median {sorted(share)[len(share) // 2]:.0%} of the session left at the first notice" if len(share) else ""
    )
    return (
        f"{said}; {found.tp[number]} of {int(found.failed.sum())} failed sessions found (recall {found.recall[number]:.3f}, "
        f"precision {found.precision[number]:.3f}){left}; {found.false_alarms[number]} false alarms in "
        f"{found.good_traces:,} traces of good sessions, at most {per_trace(found.false_bound(number, confidence))}"
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
