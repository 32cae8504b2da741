"""A session on one screen: what waits, the series with their gates, and the latest reports."""

from typing import Final

from rich.text import Text

from streams.cli import wording
from streams.cli.output import Piece, clean, clock, say, table
from streams.cli.output import show as show_table
from streams.core.model import Lane, Report, ReportScore
from streams.core.rules import Rules
from streams.history import History, Wait

SPARK_VALUES: Final = 40


def show(history: History, last: int) -> None:
    """Print the session."""
    _say_head(history)
    _say_waits(history)
    _say_unwatched(history)
    _say_series(history)
    _say_reports(history, last)


def _say_head(history: History) -> None:
    state = history.state
    say(("session ", "dim"), clean(history.session_id, "bold"))
    if state is None:
        say(("no state is kept of it any more; its reports remain", "yellow"))
        return
    parts: list[Piece] = [("project ", "dim"), clean(state.project), ("   turns closed ", "dim"), str(state.turn_count)]
    parts += [("   last activity ", "dim"), clock(state.last_activity)]
    say(*parts)
    for lane, held in (("trace lane", state.trace_notices), ("session lane", state.session_notices)):
        if held.signatures:
            say(("open problem ", "dim"), clean(", ".join(held.signatures), "magenta"), (f"   ({lane})", "dim"))


def _say_waits(history: History) -> None:
    if not history.waits:
        return
    _say_title("waiting")
    for wait in history.waits:
        for_what = _for_what(wait, history.rules)
        say("  ", clean(_what(wait), "bold"), " ", clean(for_what), (_until(wait), "dim"))


def _what(wait: Wait) -> str:
    count = len(wait.trace_ids)
    traces = f"{count} trace{'s' if count != 1 else ''}"
    if wait.turn is None:
        return f"trace {wait.trace_ids[0]}"
    return f"turn {wait.turn} ({traces})" if wait.turn else f"open turn ({traces})"


def _say_unwatched(history: History) -> None:
    if names := history.unwatched:
        _say_title("shown and never judged, for no tier of the rules names them")
        say(
            "  ",
            clean(", ".join(names)),
            ("   (tier1_metrics, tier2_metrics, tier3_metrics name those that are)", "dim"),
        )


def _for_what(wait: Wait, rules: Rules) -> str:
    match wait.reason:
        case "scores":
            return f"waits for tier {wait.tier}: {', '.join(wait.missing)}"
        case "elders":
            return "is complete and waits for the turns before it"
        case "end_of_turn":
            return "waits for a trace that ends the turn"
        case "announcement":
            return "has scores but was not announced; after the wait they stand for it"
        case "completion" | "not_evaluated":
            return _announced(wait, rules)
        case _:
            return "is complete and about to be decided"


def _announced(wait: Wait, rules: Rules) -> str:
    if wait.reason == "completion":
        return f"is announced as {wait.status} and not completed"
    statuses = ", ".join(rules.evaluated_statuses)
    return f"ended with {wait.status} and is not evaluated, for evaluated_statuses is {statuses}"


def _until(wait: Wait) -> str:
    return "" if wait.until is None else f"   until {clock(wait.until)}"


def _say_series(history: History) -> None:
    series = _series(history.reports)
    gates = history.state.gates if history.state else {}
    metrics = list(dict.fromkeys([*series, *gates]))
    if not metrics:
        return
    _say_title("values, oldest first")
    made = table("metric", "", "last", "peak", "average", "since gain")
    for metric in metrics:
        scores = series.get(metric, [])
        gate = gates.get(metric)
        last = scores[-1] if scores else None
        peak = gate.peak if gate is not None and gate.seen else last.peak if last else None
        made.add_row(
            clean(metric),
            _sparkline(scores),
            _number(last.value if last else None),
            _number(peak),
            _number(last.average if last else None),
            "" if gate is None else f"{gate.traces_since_gain} of {history.rules.gate_window}",
        )
    show_table(made)


def _series(reports: tuple[Report, ...]) -> dict[str, list[ReportScore]]:
    """Return the series that are judged as such: tier 1, and the metrics of the session lane."""
    series: dict[str, list[ReportScore]] = {}
    for report in reports:
        for score in report.scores:
            if score.value is not None and (score.tier == 1 or report.lane is Lane.SESSION):
                series.setdefault(score.metric, []).append(score)
    return series


def _sparkline(scores: list[ReportScore]) -> Text:
    """Draw a series: gains in green, what raised a condition in red."""
    line = Text()
    peak: float | None = None
    for score in scores[-SPARK_VALUES:]:
        assert score.value is not None  # only those are in a series
        gained = score.peak is not None and score.peak != peak
        peak = score.peak
        line.append(wording.sparkline([score.value]), "bold red" if score.conditions else "green" if gained else "")
    return line


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _say_reports(history: History, last: int) -> None:
    if not history.reports:
        return
    _say_title("latest reports")
    for report in history.reports[-last:]:
        name = f"turn {report.turn_number}" if report.lane is Lane.TRACE and report.turn_number else report.lane.value
        say(
            "  ",
            (clock(report.decided_at), "dim"),
            "  ",
            (f"{name:<8}", "bold"),
            "  ",
            (f"{report.severity or '-':<8}", wording.SEVERITY_STYLES.get(report.severity or "", "dim")),
            "  ",
            wording.values(report),
        )
        verdict = wording.verdict(report, history.settled.get((report.lane, report.turn_id)))
        say("            ", (verdict, "" if report.severity else "dim"))
        if without := wording.without_value(report):
            say("            ", clean(f"without a value: {', '.join(without)}", "dim"))


def _say_title(text: str) -> None:
    say()
    say((text, "bold"))
