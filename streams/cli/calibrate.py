"""tgate calibrate: which settings recorded sessions support, with the evidence, or why none."""

import asyncio
import importlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import block, examples
from streams.cli.output import as_json_option
from streams.cli.records import Records, choice_of, choice_options
from streams.errors import PartMissing
from streams.replay.running import Origin


class _Budget(click.ParamType):
    """Reads `1/500` or `0.002`."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            rate = float(Fraction(str(value)))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is no rate: say 1/500", param, ctx)
        if not 0 < rate <= 1:
            self.fail(f"{value!r} is not above 0 and at most 1", param, ctx)
        return rate


@click.command(
    epilog=block(
        "Without labels: how values lie, what rules would have raised, and where a rule cannot work.",
        "With --labels or --cases also what they found, missed and raised for nothing, and how early.",
        "--false-alarms picks the gate's setting with the best recall, then the longest lead, among",
        "those whose false alarms stay within the budget, as a settings file with its evidence; where",
        "the labels do not support it, it says so and exits with 1.",
        "--pace learns what good sessions (without labels: all) had reached by each trace, chooses",
        "within the same budget when staying below that counts, and is compared with the gate.",
    )
    + "\n\n"
    + examples(
        "tgate calibrate --since 7d",
        "tgate calibrate --labels labels.json --false-alarms 1/500 --html report.html",
        "tgate calibrate sessions.jsonl.gz --labels labels.csv --false-alarms 1/100 --toml chosen.toml",
        "tgate replay --diff recorded chosen.toml --half b    what it changes where it was not chosen",
        "tgate calibrate --since 7d --false-alarms 1/200 --pace pace.toml",
    )
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--from",
    "origin",
    type=click.Choice([Origin.SESSION_LOG.value, Origin.INPUTS.value]),
    default=Origin.SESSION_LOG.value,
    show_default=True,
    help="Which topic to learn from, where no file is named; inputs are traces and scores as published.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Which sessions failed: JSON {session: failed}, a JSON list of failed sessions, or CSV session_id,failed.",
)
@click.option(
    "--cases",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Without labels: eval cases, one as JSON a line; their sessions count as failed, all others as good.",
)
@click.option(
    "--false-alarms",
    type=_Budget(),
    metavar="1/N",
    help="Choose a setting with at most so many false alarms per trace of good sessions.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="How sure the budget must be kept.",
)
@click.option(
    "--by-estimate", is_flag=True, help="Take the best setting as counted, also when the budget is not proven."
)
@click.option(
    "--toml", type=click.Path(path_type=Path), metavar="FILE", help="Where the chosen settings go; default: the screen."
)
@click.option(
    "--pace",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Learn pace lines within the budget and write them there, for the setting pace_file. Without labels every "
    "alarm counts as false.",
)
@click.option(
    "--by-task", is_flag=True, help="A pace line for each task with enough sessions: the first tag of their traces."
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report there, one file, pictures included.",
)
@click.option(
    "--png", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write the report's pictures there."
)
@click.option(
    "--target-precision",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Look for the lowest threshold that reaches it.",
)
@click.option(
    "--value",
    "one_value",
    type=click.Choice(["last", "lowest", "mean"]),
    default="last",
    show_default=True,
    help="Which of a session's values a threshold is held against.",
)
@as_json_option
@choice_options
@common
@pass_invocation
def command(invocation: Invocation, /, *, files: tuple[Path, ...], origin: str, as_json: bool, **options: Any) -> None:
    """Learn from replayed sessions which thresholds and gate settings they support, and where a rule cannot work.

    FILE holds traces and scores as `tgate publish` takes them: JSON lines, or Parquet. Rules as with `tgate replay`.
    """
    try:
        calibrating = importlib.import_module("streams.cli.calibrating")
    except ModuleNotFoundError as error:
        raise PartMissing(f"calibration needs {error.name}: pip install 'trajectory-gate[calibration]'") from error
    asked = {name: options.pop(name) for name in calibrating.Asked.__dataclass_fields__ if name in options}
    records = Records(invocation, Origin(origin), files, choice_of(**options), as_json)
    asked["source"] = ", ".join(file.name for file in files) or f"topic {origin}"
    raise SystemExit(asyncio.run(calibrating.run(records, calibrating.Asked(**asked), as_json=as_json)))
