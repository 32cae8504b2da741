"""What each kind of record says to a person, in one line."""

from collections.abc import Mapping
from typing import Final

from rich.text import Text

from streams.cli.output import clean, clock
from streams.core.model import (
    Condition,
    Decision,
    EvalCase,
    JournalEntry,
    Lane,
    NeedsHuman,
    Notice,
    Outcome,
    Report,
    ReportScore,
    Severity,
    TurnSettled,
)

SEVERITY_STYLES: Final[Mapping[str, str]] = {
    Severity.BREACH: "bold red",
    Severity.RELATIVE: "yellow",
    Severity.TREND: "magenta",
}
OUTCOME_STYLES: Final[Mapping[str, str]] = {
    Outcome.POSTED: "green",
    Outcome.SUPPRESSED: "yellow",
    Outcome.NEEDS_HUMAN: "bold red",
    Outcome.SHADOW: "cyan",
    Outcome.NONE: "dim",
}
BLOCKS: Final = "▁▂▃▄▅▆▇█"

_DECISIONS: Final[Mapping[str, str]] = {
    Decision.POSTED_NEW: "it has a problem that the turn before did not have",
    Decision.POSTED_AGAIN: "the same problem as before, and its cooldown has run out",
    Decision.UNCHANGED: "no notice: the problem is known already, and is told once until it has gone",
    Decision.QUIET: "no notice: nothing was found",
    Decision.RECOVERED: "no notice: this turn raised nothing, where the turn before did (the gate counts anew after it fired)",
    Decision.PENDING: "no notice: no score has a value, so nothing was learned",
    Decision.SHADOW: "no notice: observe_only is on; it would have been posted",
}
_OUTCOMES: Final[Mapping[str, str]] = {
    Outcome.POSTED: "posted",
    Outcome.SUPPRESSED: "held back by the tripped circuit breaker",
    Outcome.NEEDS_HUMAN: "it tripped the circuit breaker: a person was asked instead",
}


def notice(item: Notice) -> Text:
    return _line(item.time, item.severity, SEVERITY_STYLES, item.project, item.session_id).append_text(
        clean(item.summary)
    )


def needs_human(item: NeedsHuman) -> Text:
    line = Text.assemble(
        (clock(item.time), "dim"), "  ", ("needs human", "bold red"), "  ", clean(item.project, "bold")
    )
    return line.append("  ").append_text(clean(item.summary))


def report(item: Report) -> Text:
    name = item.severity or "-"
    line = _line(item.decided_at, name, SEVERITY_STYLES, item.project, item.session_id)
    what = f"turn {item.turn_number}" if item.lane is Lane.TRACE else "session scores"
    line.append(f"{what}: ").append_text(values(item)).append("  ")
    return line.append_text(clean(str(item.decision).replace("_", " "), "bold" if item.severity else "dim"))


def settled(item: TurnSettled) -> Text:
    line = _line(item.time, item.outcome, OUTCOME_STYLES, item.project, item.session_id)
    return line.append_text(clean(item.turn_id)).append(" ").append_text(clean(f"({item.reason})", "dim"))


def journal_entry(item: JournalEntry) -> Text:
    line = _line(item.time, str(item.kind), {}, item.project or "-", item.session_id or "-", width=13)
    said = [item.reason, item.metric, item.trace_id and f"trace {item.trace_id}", item.detail]
    return line.append_text(clean(", ".join(str(part) for part in said if part)))


def case(item: EvalCase) -> Text:
    line = _line(item.time, "case", {}, item.project, item.session_id)
    return line.append_text(clean(", ".join(item.signatures))).append(" ").append_text(clean(item.case_id, "dim"))


def values(item: Report) -> Text:
    """Return a report's values, those with a condition in the colour of what it means."""
    shown: dict[str, list[ReportScore]] = {}
    for score in item.scores:
        if score.value is not None:
            shown.setdefault(score.metric, []).append(score)
    if not shown:
        return Text("no values", "dim")
    return Text(", ").join(_metric(metric, scores) for metric, scores in shown.items())


def _metric(metric: str, scores: list[ReportScore]) -> Text:
    text = clean(metric).append(" ")
    found = {str(condition) for score in scores for condition in score.conditions}
    style = "red" if Condition.BREACH in found else "magenta" if found else ""
    text.append(" ".join(f"{score.value:.4g}" for score in scores), style)
    return text.append_text(clean(f" {' and '.join(sorted(found))}", style)) if found else text


def verdict(item: Report, outcome: TurnSettled | None) -> str:
    """Return in plain words why a report did or did not become a notice."""
    why = _DECISIONS.get(item.decision, str(item.decision))
    if item.decision not in (Decision.POSTED_NEW, Decision.POSTED_AGAIN):
        return why
    landed = "on its way to the circuit breaker" if outcome is None else _OUTCOMES.get(outcome.outcome, outcome.outcome)
    return f"{landed}: {why}"


def without_value(item: Report) -> list[str]:
    """Return the metrics that the turn waited for and that have no value, with why."""
    missing = {score.metric: score.status.lower() for score in item.scores if score.value is None}
    return [f"{metric} ({status})" for metric, status in missing.items()]


def sparkline(series: list[float]) -> str:
    """Return values in [0, 1] as blocks of that height."""
    return "".join(BLOCKS[min(len(BLOCKS) - 1, int(max(0.0, value) * len(BLOCKS)))] for value in series)


def _line(time: int, name: str, styles: Mapping[str, str], project: str, session_id: str, width: int = 8) -> Text:
    line = Text.assemble((clock(time), "dim"), "  ", (f"{name:<{width}}", styles.get(name, "")), "  ")
    return (
        line.append_text(clean(project, limit=40)).append("  ").append_text(clean(session_id, "bold", 80)).append("  ")
    )
