"""The report as one HTML page: pictures inside, nothing fetched from anywhere."""

import html
from collections.abc import Iterable, Sequence
from typing import Final

from streams.calibration import comparison, words
from streams.calibration.calibration import BUDGETS, CURRENT, Calibration, GateFinding, PaceFinding
from streams.calibration.grid import words as setting_words
from streams.calibration.pictures import Picture

STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1f2430; background: #f6f7f9; margin: 0; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 6px 0; } .quiet { color: #667085; }
.verdict { border-left: 5px solid #0b8a6b; background: #fff; padding: 12px 16px; margin: 20px 0; border-radius: 4px; }
.verdict.refused { border-color: #d1495b; }
.tiles { display: flex; gap: 12px; flex-wrap: wrap; margin: 16px 0; }
.tile { background: #fff; border-radius: 6px; padding: 10px 18px; min-width: 96px; }
.tile b { display: block; font-size: 22px; }
figure { background: #fff; border-radius: 6px; padding: 14px; margin: 12px 0; }
figure svg { max-width: 100%; height: auto; display: block; } figcaption { color: #475467; font-size: 13px; margin-top: 6px; }
.wide { overflow-x: auto; background: #fff; border-radius: 6px; padding: 6px 14px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; } th { text-align: left; color: #475467; font-weight: 600; }
th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid #eaecf0; white-space: nowrap; vertical-align: bottom; }
th { white-space: normal; }
td.number { text-align: right; padding-right: 18px; font-variant-numeric: tabular-nums; } th.number { text-align: right; padding-right: 18px; }
li { margin: 4px 0; } pre { background: #fff; border-radius: 6px; padding: 14px; overflow-x: auto; font-size: 12.5px; }
"""


def page(found: Calibration, pictures: Sequence[Picture], source: str, settings: str | None) -> str:
    """Return the whole page. *settings* is the chosen settings file, where there is one."""
    gate = found.gate
    parts = [f"<h1>Calibration</h1><p class='quiet'>Learned from {_text(source)}.</p>", _tiles(found)]
    if gate is not None and gate.chosen is not None:
        parts.append(_verdict(gate))
    if found.abstentions:
        said = "".join(
            f"<li><b>{_text(item.metric)}, {_text(item.rule)}</b>: {_text(item.text)}</li>"
            for item in found.abstentions
        )
        parts.append(f"<h2>Where a rule cannot work</h2><ul>{said}</ul>")
    by_name = {picture.name: picture for picture in pictures}
    if gate is not None:
        parts += ["<h2>The gate</h2>", _gate_table(gate)]
        parts += _figures(by_name, ("trade-off", "lead-time", "notices"))
        if found.pace is not None:
            parts += [*_pace(found.pace, gate), *_figures(by_name, _starting(by_name, "pace-"))]
        parts += [
            "<h2>Sessions worth a look</h2>",
            *_figures(by_name, _starting(by_name, "sessions-")),
        ]
    parts += ["<h2>Metrics and their thresholds</h2>", _metric_table(found)]
    parts += _figures(by_name, _starting(by_name, "metric-"))
    if settings is not None:
        parts.append(f"<h2>The settings file</h2><pre>{_text(settings)}</pre>")
    head = f"<meta charset='utf-8'><title>tgate calibration</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body><main>{''.join(parts)}</main></body></html>\n"


def _text(text: object) -> str:
    return html.escape(str(text))


def _tiles(found: Calibration) -> str:
    tiles: list[tuple[str, str]] = [(f"{found.sessions:,}", "sessions")]
    if found.gate is not None:
        tiles.append((f"{found.gate.tracks.traces:,}", "traces with a tier-1 value"))
    if found.labels is not None:
        failed = sum(found.labels.values())
        tiles += [(f"{failed:,}", "failed"), (f"{len(found.labels) - failed:,}", "good")]
    if found.agreement is not None:
        tiles.append((f"{found.agreement:.0%}", "of sessions where metrics agree"))
    return "<div class='tiles'>" + "".join(f"<div class='tile'><b>{a}</b>{_text(b)}</div>" for a, b in tiles) + "</div>"


def _verdict(gate: GateFinding) -> str:
    assert gate.chosen is not None
    chosen = gate.chosen
    said = [f"<p><b>{_text(_sentence(words.verdict(chosen)))}</b></p>"]
    if chosen.setting is not None:
        name = "Chosen" if chosen.ok else "Best as counted, not proven"
        said.append(f"<p>{name}: {_text(words.setting(gate, chosen.setting, chosen.confidence))}.</p>")
        said.append(f"<p class='quiet'>{_text(words.intervals(gate, chosen.setting))}.</p>")
    if chosen.held_out is not None:
        said.append(f"<p class='quiet'>{_text(_sentence(words.held_out(chosen.held_out)))}</p>")
    said.append(f"<p>In force: {_text(words.setting(gate, CURRENT, chosen.confidence))}.</p>")
    return f"<div class='verdict{'' if chosen.ok else ' refused'}'>{''.join(said)}</div>"


def _pace(found: PaceFinding, gate: GateFinding) -> list[str]:
    said = []
    if (chosen := found.chosen) is not None:
        said.append(f"<p><b>{_text(_sentence(words.verdict(chosen)))}</b></p>")
        if chosen.setting is not None:
            name = "Chosen" if chosen.ok else "Best as counted, not proven"
            meant = words.meant(found.evidence, chosen.setting, chosen.confidence)
            said.append(f"<p>{name}: {_text(found.settings[chosen.setting])}: {_text(meant)}.</p>")
        said = [f"<div class='verdict{'' if chosen.ok else ' refused'}'>{''.join(said)}</div>"]
    return [
        "<h2>Pace</h2>",
        *said,
        (
            f"<p>{_text(comparison.title(found))}. What follows the setting is counted on sessions that it was neither "
            "learned from nor chosen by.</p>"
        ),
        _table(comparison.columns(found), comparison.rows(found, gate), 2),
        f"<p class='quiet'>{_text(_sentence(words.overlap(found)))}</p>",
    ]


def _starting(by_name: dict[str, Picture], prefix: str) -> list[str]:
    return [name for name in by_name if name.startswith(prefix)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _gate_table(gate: GateFinding) -> str:
    found = gate.evidence
    rows = [("in force", CURRENT)]
    if found.two_sided:
        within = ((f"best within {words.per_trace(budget)}", gate.within(budget)) for budget in BUDGETS)
        rows += [(name, number) for name, number in within if number is not None]
    if gate.chosen is not None and gate.chosen.setting is not None:
        rows.append(("chosen" if gate.chosen.ok else "best as counted", gate.chosen.setting))
    columns = ["", "setting", "notices per 1,000 traces", "sessions flagged"]
    columns += (
        ["precision", "recall", "false alarms per 1,000 good traces", "at most, 95 %", "mean share left"]
        if found.labeled
        else []
    )
    cells = []
    for name, number in rows:
        row = [
            name,
            setting_words(gate.gates[number]),
            f"{found.per_1000[number]:.1f}",
            str(int(found.flagged[number].sum())),
        ]
        if found.labeled:
            row += [
                f"{found.precision[number]:.3f}",
                f"{found.recall[number]:.3f}",
                f"{1000 * found.false_rate[number]:.1f}",
            ]
            row += [words.per_trace(found.false_bound(number, 0.95)), f"{found.lead[number]:.0%}"]
        cells.append(row)
    return _table(columns, cells, 2)


def _metric_table(found: Calibration) -> str:
    columns = ["metric", "sessions", "min", "median", "mean", "max", "deviation", "threshold", "breached"]
    labeled = found.labels is not None
    columns += ["precision", "recall", "F1", "best F1 at", "lowest threshold at target precision"] if labeled else []
    cells = []
    for item in found.values:
        row = [item.metric, str(item.count)]
        row += [f"{value:.3g}" for value in (item.minimum, item.median, item.mean, item.maximum, item.stdev)]
        row += [f"{item.threshold:g}", str(item.breach_count)]
        if item.labeled is not None:
            at, target = item.labeled.configured, item.labeled.target_precision_threshold
            row += [f"{value:.3f}" for value in (at.precision, at.recall, at.f1)]
            row += [
                f"{item.labeled.best_f1_threshold:g} ({item.labeled.best_f1:.3f})",
                "none" if target is None else f"{target:g}",
            ]
        cells.append(row + [""] * (len(columns) - len(row)))
    return _table(columns, cells, 1)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int) -> str:
    def cell(tag: str, at: int, text: str) -> str:
        return f"<{tag}{' class=number' if at >= numbers_from else ''}>{_text(text)}</{tag}>"

    head = "".join(cell("th", at, name) for at, name in enumerate(columns))
    body = "".join("<tr>" + "".join(cell("td", at, text) for at, text in enumerate(row)) + "</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>"


def _figures(by_name: dict[str, Picture], names: Iterable[str]) -> list[str]:
    return [
        f"<figure>{by_name[name].svg()}<figcaption>{_text(by_name[name].caption)}</figcaption></figure>"
        for name in names
        if name in by_name
    ]
