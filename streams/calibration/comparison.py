"""Pace and the gate side by side at one budget of false alarms: the same table on the screen and in the report."""

from streams.calibration import words
from streams.calibration.calibration import Contender, GateFinding, PaceFinding
from streams.calibration.grid import words as gate_words


def title(found: PaceFinding) -> str:
    """Say what is compared."""
    strict = found.evidence.strict
    counted = "every alarm counted as false" if strict else "false alarms per trace of good sessions"
    return f"Pace beside the gate, at {words.per_trace(found.rate)} {'alarms per trace, ' if strict else ''}{counted}"


def columns(found: PaceFinding) -> tuple[str, ...]:
    """Return the table's head; what follows the setting is counted on sessions that it was not chosen by."""
    if found.evidence.strict:
        return "rule", "best setting as counted", "sessions spoken of", "alarms / 1,000 traces", "at most", "share left"
    return (
        "rule",
        "best setting as counted",
        "failed sessions found",
        "false alarms / 1,000 good traces",
        "at most",
        "share left",
    )


def rows(found: PaceFinding, gate: GateFinding) -> list[tuple[str, ...]]:
    """Return a row for pace and one for the gate."""
    pace, own = found.pace.setting, found.gate.setting
    return [
        ("pace", _or_none(None if pace is None else str(found.settings[pace])), *_held_out(found.pace)),
        ("gate", _or_none(None if own is None else gate_words(gate.gates[own])), *_held_out(found.gate)),
    ]


def _or_none(text: str | None) -> str:
    return "none finds anything within the budget" if text is None else text


def _held_out(found: Contender) -> tuple[str, ...]:
    held = found.held_out
    return (
        f"{held.found} of {held.failed}",
        f"{1000 * held.false_alarms / max(1, held.good_traces):.1f}",
        words.per_trace(held.bound),
        f"{held.lead:.0%}" if held.found else "-",
    )
