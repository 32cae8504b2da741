"""What a calibration found, on the screen or as one JSON object a line."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from rich.text import Text

from streams.calibration import comparison, words
from streams.calibration.calibration import BUDGETS, CURRENT, Calibration, GateFinding, PaceFinding, RuleFinding
from streams.calibration.grid import words as grid_words
from streams.calibration.pacing import QUANTILES
from streams.calibration.values import MetricValues
from streams.cli.output import clean, say, say_json, show, table
from streams.cli.wording import BLOCKS

TOP_RULES: Final = ("trend", "relative", "breach", "percentile", "deadline")


def show_calibration(found: Calibration) -> None:
    """Show everything as tables and sentences."""
    labels = found.labels
    said = "no labels" if labels is None else f"{sum(labels.values())} failed, {_good(labels)} did not"
    traces = found.gate.tracks.traces if found.gate else 0
    say((f"{found.sessions} sessions, {traces:,} traces with a tier-1 value; {said}", "bold"))
    _show_values(found)
    for item in found.abstentions:
        say(("cannot work  ", "yellow"), clean(f"{item.metric}, {item.rule}: {item.text}"))
    if found.gate is not None:
        _show_gate(found.gate)
        for other in found.others:
            _show_rules(found.gate, other)
        if found.pace is not None:
            _show_pace(found.pace, found.gate)


def _good(labels: Mapping[str, bool]) -> int:
    return len(labels) - sum(labels.values())


def _show_values(found: Calibration) -> None:
    labeled = found.labels is not None
    columns = ["threshold", "breached"]
    columns += ["precision", "recall", "F1", "best F1 at", "target precision at"] if labeled else []
    made = table("metric", "sessions", "min", "median", "mean", "max", "0 to 1", *columns, title="")
    for item in found.values:
        made.add_row(
            clean(item.metric),
            str(item.count),
            *(f"{value:.3g}" for value in (item.minimum, item.median, item.mean, item.maximum)),
            blocks(item.histogram),
            f"{item.threshold:g}",
            str(item.breach_count),
            *(_judged(item) if labeled else []),
        )
    say("")
    say((f"The {found.one_value} value of each session against its threshold", "bold"))
    show(made)
    if found.agreement is not None:
        say(f"metrics agree on {found.agreement:.0%} of the sessions that have several")
    say("")


def _judged(item: MetricValues) -> list[str]:
    if item.labeled is None:
        return ["-"] * 5
    at = item.labeled.configured
    target = item.labeled.target_precision_threshold
    return [
        *(f"{value:.3f}" for value in (at.precision, at.recall, at.f1)),
        f"{item.labeled.best_f1_threshold:g} ({item.labeled.best_f1:.3f})",
        "none" if target is None else f"{target:g} ({item.labeled.target_precision:g})",
    ]


def blocks(counts: tuple[int, ...]) -> str:
    """Return counts as blocks of their heights."""
    most = max(counts)
    return "".join(BLOCKS[math.ceil(count / most * (len(BLOCKS) - 1))] if count else " " for count in counts)


def _show_gate(gate: GateFinding) -> None:
    found = gate.evidence
    rows = [("in force", CURRENT)]
    if found.two_sided:
        rows += [
            (f"best within {words.per_trace(budget)}", number)
            for budget in BUDGETS
            if (number := gate.within(budget)) is not None
        ]
        rows.append(("best F1", gate.best_f1))
    if gate.chosen is not None and gate.chosen.setting is not None:
        rows.append(("chosen" if gate.chosen.ok else "best as counted", gate.chosen.setting))
    say((f"The gate: {len(gate.gates):,} settings over whole sessions", "bold"))
    names = ("", "window", "target", "gain", "drop", "notices / 1,000 traces", "sessions flagged")
    more = (
        "precision",
        "recall",
        "F1",
        "false alarms / 1,000 good traces",
        "at most (95 %)",
        "traces left",
        "share left",
    )
    made = table(*names, *(more if found.labeled else ()))
    for name, number in rows:
        made.add_row(Text(name, "bold" if name == "chosen" else ""), *_gate_row(gate, number))
    show(made)
    if found.labeled:
        shown = gate.chosen.setting if gate.chosen and gate.chosen.setting is not None else CURRENT
        say((f"{'in force' if shown == CURRENT else 'chosen'}, {words.intervals(gate, shown)}", "dim"))
    if gate.chosen and gate.chosen.held_out:
        say((words.held_out(gate.chosen.held_out), "dim"))
    say("")


def _gate_row(gate: GateFinding, number: int) -> list[str]:
    found, setting = gate.evidence, gate.gates[number]
    row = [
        str(setting.window) if setting.target else "-",
        f"{setting.target:g}" if setting.target else "off",
        f"{setting.gain:g}",
        f"{setting.drop:g}" if setting.drop < 1 else "off",
        f"{found.per_1000[number]:.1f}",
        f"{int(found.flagged[number].sum())} of {len(found.lengths)}",
    ]
    if not found.labeled:
        return row
    left, share = found.leads(number)
    return [
        *row,
        *(f"{values[number]:.3f}" for values in (found.precision, found.recall, found.f1)),
        f"{1000 * found.false_rate[number]:.1f}",
        words.per_trace(found.false_bound(number, 0.95)),
        f"{np.median(left):g}" if len(left) else "-",
        f"{np.median(share):.0%}" if len(share) else "-",
    ]


def _show_rules(gate: GateFinding, other: RuleFinding) -> None:
    if not other.evidence.two_sided:
        return
    rate = gate.chosen.budget if gate.chosen else float(gate.evidence.false_rate[CURRENT])
    best = other.within(rate)
    say((f"Other rules over {other.metric}, at the same budget of false alarms, as counted", "bold"))
    made = table("rule", "setting", "recall", "precision", "false alarms / 1,000 good traces", "share left (mean)")
    mine = gate.within(rate)
    if mine is not None:
        made.add_row("gate", grid_words(gate.gates[mine]), *_rule_row(gate.evidence, mine))
    for name in TOP_RULES:
        if name not in best:
            made.add_row(name, "none finds anything within the budget", "", "", "", "")
            continue
        rule = other.rules[best[name]]
        made.add_row(
            name, ", ".join(f"{key} {value:g}" for key, value in rule.settings), *_rule_row(other.evidence, best[name])
        )
    show(made)
    say("")


def _show_pace(found: PaceFinding, gate: GateFinding) -> None:
    say((comparison.title(found), "bold"))
    made = table(*comparison.columns(found))
    for row in comparison.rows(found, gate):
        made.add_row(*row)
    show(made)
    said = "what follows the setting is counted on sessions that it was neither learned from nor chosen by; "
    say((f"{said}{words.overlap(found)}", "dim"))
    say("")


def _rule_row(found: Any, number: int) -> list[str]:
    return [
        f"{found.recall[number]:.3f}",
        f"{found.precision[number]:.3f}",
        f"{1000 * found.false_rate[number]:.1f}",
        f"{found.lead[number]:.0%}",
    ]


def show_json(found: Calibration) -> None:
    """Print one JSON object a line: metrics, abstentions, every setting of the gate, every other rule, the choice."""
    for item in found.values:
        say_json({"kind": "metric", **_metric_json(item)})
    say_json({"kind": "agreement", "value": found.agreement})
    for reason in found.abstentions:
        say_json({"kind": "abstention", "found": reason})
    if found.gate is not None:
        for number, setting in enumerate(found.gate.gates):
            say_json(
                {
                    "kind": "gate",
                    "current": number == CURRENT,
                    "setting": setting,
                    **_evidence_json(found.gate.evidence, number),
                }
            )
    for other in found.others:
        for number, rule in enumerate(other.rules):
            row = {"kind": "rule", "metric": other.metric, "rule": rule.name, "setting": dict(rule.settings)}
            say_json(row | _evidence_json(other.evidence, number))
    if found.pace is not None:
        _pace_json(found.pace, found.gate)
    if found.gate is not None and (chosen := found.gate.chosen) is not None:
        best = None if chosen.setting is None else found.gate.gates[chosen.setting]
        say_json({"kind": "choice", "setting": best, "said": words.verdict(chosen), "found": _finite(chosen)})


def _pace_json(found: PaceFinding, gate: GateFinding | None) -> None:
    def setting(number: int | None) -> dict[str, Any] | None:
        if number is None:
            return None
        quantile, after, patience = found.settings[number]
        return {"quantile": QUANTILES[quantile], "after": after, "patience": patience}

    for number in range(len(found.settings)):
        say_json({"kind": "pace", "setting": setting(number), **_evidence_json(found.evidence, number)})
    strict = found.evidence.strict
    own = None if gate is None or found.gate.setting is None else gate.gates[found.gate.setting]
    for rule, held, best in (("pace", found.pace, setting(found.pace.setting)), ("gate", found.gate, own)):
        row = {"kind": "comparison", "rule": rule, "budget": found.rate, "strict": strict, "setting": best}
        say_json(row | {"held_out": held.held_out})
    if found.chosen is not None:
        row = {"kind": "pace_choice", "setting": setting(found.chosen.setting), "said": words.verdict(found.chosen)}
        say_json(row | {"found": _finite(found.chosen), "lines": found.paces})


def _metric_json(item: MetricValues) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def _evidence_json(found: Any, number: int) -> dict[str, Any]:
    names = ("precision", "recall", "f1", "false_rate", "lead") if found.labeled else ()
    row = {name: float(getattr(found, name)[number]) for name in names}
    row |= {name: int(getattr(found, name)[number]) for name in (("tp", "fp", "false_alarms") if found.labeled else ())}
    return {"notices_per_1000": float(found.per_1000[number]), "flagged": int(found.flagged[number].sum()), **row}


def _finite(chosen: Any) -> dict[str, Any]:
    """JSON knows neither NaN nor infinity."""
    values = {name: getattr(chosen, name) for name in chosen.__dataclass_fields__ if name != "setting"}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }
