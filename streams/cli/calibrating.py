"""One run of tgate calibrate: sessions in, findings on the screen, files out. Needs the extra `calibration`."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from streams.agents.outbox import Output
from streams.calibration import words
from streams.calibration.calibration import Calibration, Wish, calibrate
from streams.calibration.labels import complete, names_only_failed, of_cases, read_labels
from streams.calibration.seen import Seen
from streams.calibration.toml import settings_file, wrapped
from streams.cli.calibrate_show import show_calibration, show_json
from streams.cli.output import note, say
from streams.cli.records import Records
from streams.cli.replay import side_of
from streams.core.rules import Rules
from streams.errors import PartMissing
from streams.pace_files import pace_text


@dataclass(frozen=True)
class Asked:
    """The command's options; see their help."""

    labels: Path | None
    cases: Path | None
    false_alarms: float | None
    confidence: float
    by_estimate: bool
    toml: Path | None
    html: Path | None
    png: Path | None
    target_precision: float
    one_value: str
    pace: Path | None
    by_task: bool
    source: str = ""


async def run(records: Records, asked: Asked, *, as_json: bool) -> int:
    """Calibrate; returns the exit code."""
    _check(asked)
    seen, rules = await _see(records)
    if not seen.projects:
        raise click.ClickException("no session was decided in what was read: there is nothing to learn from")
    labels = _labels(asked, seen)
    found = calibrate(
        seen,
        rules,
        Wish(labels, asked.false_alarms, asked.confidence, asked.target_precision, asked.one_value, asked.by_task),
    )
    if as_json:
        show_json(found)
    else:
        show_calibration(found)
    text = _settings(asked, found)
    if asked.html or asked.png:
        _write_report(asked, found, text)
    refused = 0
    if asked.false_alarms is not None and labels is not None:
        refused = _choose(asked, found, text, as_json=as_json)
    return refused if asked.pace is None else max(refused, _write_pace(asked, asked.pace, found))


def _check(asked: Asked) -> None:
    """Refuse options that make no sense together."""
    if asked.pace is not None and asked.false_alarms is None:
        raise click.UsageError("--pace needs --false-alarms: when falling behind counts is chosen within that budget")
    if asked.false_alarms is not None and asked.pace is None and asked.labels is None and asked.cases is None:
        raise click.UsageError(
            "--false-alarms needs --labels (or --cases): without them, no alarm is known to be false. "
            "Pace is learned without: add --pace FILE, and every alarm counts as false"
        )


async def _see(records: Records) -> tuple[Seen, Rules]:
    """Replay the records; returns what was seen, and the last rules that it was seen under."""
    side = side_of(records.invocation)
    seen = Seen()

    async def take(_: int, outputs: Sequence[Output]) -> None:
        seen.take(outputs)

    (replay,) = await records.into([side], take, seen.watch)
    return seen, replay.rules[-1] if replay.rules else side.rules


def _labels(asked: Asked, seen: Seen) -> dict[str, bool] | None:
    if asked.labels is not None:
        found = read_labels(asked.labels)
        found = complete(found, seen.projects) if names_only_failed(asked.labels) else found
        unknown = len(seen.projects.keys() - found.keys())
        if unknown:
            note(("no label ", "yellow"), f"for {unknown} of {len(seen.projects)} sessions")
        return found
    return None if asked.cases is None else complete(of_cases(asked.cases), seen.projects)


def _settings(asked: Asked, found: Calibration) -> str | None:
    """Return the settings file to write, if there is one."""
    chosen = found.gate.chosen if found.gate else None
    if found.gate is None or chosen is None or chosen.setting is None or not (chosen.ok or asked.by_estimate):
        return None
    comments = words.evidence(found, asked.source)
    if not chosen.ok:
        comments.insert(2, "NOT PROVEN: taken as counted, because --by-estimate asked for it.")
    return settings_file(found.rules, found.gate.gates[chosen.setting], comments)


def _choose(asked: Asked, found: Calibration, text: str | None, *, as_json: bool) -> int:
    """Say what was chosen or why nothing was, and write it; returns the exit code."""
    chosen = found.gate.chosen if found.gate else None
    if chosen is None:
        note(("refused: ", "bold red"), "no tier-1 metric has a value, so the gate has nothing to fold")
        return 1
    note((words.verdict(chosen), "bold green" if chosen.ok else "bold red"))
    if text is None:
        return 1
    if asked.toml is not None:
        asked.toml.write_text(text, "utf-8")
        note(f"wrote {asked.toml}; try it with: tgate replay --diff recorded {asked.toml}")
    elif not as_json:
        say(f"\n{text}")
    return 0


def _write_pace(asked: Asked, file: Path, found: Calibration) -> int:
    """Say whether pace was chosen, and write its lines; returns the exit code."""
    chosen = found.pace.chosen if found.pace else None
    if found.pace is None or chosen is None:
        note(("pace refused: ", "bold red"), "no tier-1 metric has a value, so there is no peak to learn from")
        return 1
    note(("pace ", "bold"), (words.verdict(chosen), "bold green" if chosen.ok else "bold red"))
    if not (found.pace.paces and (chosen.ok or asked.by_estimate)):
        return 1
    comments = words.pace_evidence(found, asked.source)
    if not chosen.ok:
        comments.insert(2, "NOT PROVEN: taken as counted, because --by-estimate asked for it.")
    lines = [line for comment in comments for line in wrapped(comment)]
    file.write_text(pace_text(found.pace.paces, lines), "utf-8")
    note(f"wrote {file}; try it with: tgate replay -s pace_file={file}")
    return 0


def _write_report(asked: Asked, found: Calibration, text: str | None) -> None:
    try:
        report = importlib.import_module("streams.calibration.report")
    except ModuleNotFoundError as error:
        raise PartMissing(f"pictures need {error.name}: pip install 'trajectory-gate[calibration]'") from error
    pictures = report.pictures(found)
    if asked.html is not None:
        asked.html.write_text(report.page(found, pictures, asked.source, text), "utf-8")
        note(f"wrote {asked.html}")
    if asked.png is not None:
        asked.png.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            (asked.png / f"{picture.file_name}.png").write_bytes(picture.png())
        note(f"wrote {len(pictures)} pictures to {asked.png}")
