"""tgate scores: what people and programs say of a trace or a session."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, Final

import click
import orjson

from streams import reading
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import block, examples
from streams.cli.output import as_json_option, clean, say, say_json
from streams.core.ids import digest
from streams.core.model import DataType, ScoreSource, ScoreTarget
from streams.engine import Out, Publisher, abilities
from streams.errors import InvalidRecord
from streams.evaluators.metrics import METRICS
from streams.settings import Settings
from streams.topics import EVAL_SCORES
from streams.wire import Wire
from streams.wire.checks import id_fits

SOURCES: Final = (ScoreSource.ANNOTATION, ScoreSource.PROGRAMMATIC)


@click.group(
    epilog=examples(
        "tgate scores submit tool_correctness 0.2 --session s1 --trace t7 --reason 'called the wrong shop'",
        "tgate scores submit outcome_correct false --session s1 --source programmatic",
    )
)
def group() -> None:
    """Submit scores of people and programs."""


@group.command(
    epilog=block(
        "A number from 0 to 1 is NUMERIC, true and false are BOOLEAN; any other text needs --type categorical,",
        "and is carried but never judged. The same submission again has the same id, and counts once.",
        "Many scores at once, one JSON object a line, are for `tgate publish`.",
    )
    + "\n\n"
    + examples(
        "tgate scores submit confidence 0.9 --session s1 --trace t7",
        "tgate scores submit outcome_correct true --session s1",
        "tgate scores submit style good --type categorical --session s1 --trace t7 --source programmatic",
    )
)
@click.argument("metric", metavar="METRIC")
@click.argument("value", metavar="VALUE")
@click.option("--session", required=True, metavar="S", help="The session judged.")
@click.option("--trace", metavar="T", help="The trace judged; without, the session or the turn.")
@click.option(
    "--source",
    type=click.Choice([item.value.lower() for item in SOURCES]),
    default=ScoreSource.ANNOTATION.lower(),
    show_default=True,
    help="Who says so: a person, whose word replaces a judge's for good, or a program.",
)
@click.option(
    "--type",
    "data_type",
    type=click.Choice([item.value.lower() for item in DataType]),
    help="How the value is read; without, by what it looks like.",
)
@click.option("--reason", metavar="TEXT", help="Why, for people.")
@click.option("--threshold", type=click.FloatRange(0, 1), metavar="X", help="Its pass line.")
@click.option("--metadata", metavar="JSON", help="More about it, as one JSON object.")
@click.option("--run", "eval_run_id", metavar="ID", help="The eval run that it belongs to.")
@click.option("--id", "score_id", metavar="ID", help="The score's own id, over the one that its content gives it.")
@as_json_option
@common
@pass_invocation
def submit(invocation: Invocation, /, *, as_json: bool, **given: Any) -> None:
    """Submit one score: what a person (an annotation) or a program says of METRIC.

    An annotation of a signal counts for good in session metrics, whatever judges say. A score of
    outcome_correct without a trace joins the session's oldest undecided turn.
    """
    settings = invocation.settings
    fields = _fields(given)
    wire = Wire.of(settings)
    try:
        value = wire.write_input("Score", fields)
    except InvalidRecord as error:
        raise click.UsageError(str(error)) from None
    asyncio.run(_publish(settings, fields["session_id"], value))
    if as_json:
        say_json(fields)
    else:
        about = f"trace {given['trace']}" if given["trace"] else f"session {given['session']}"
        say("submitted ", clean(fields["name"], "bold"), clean(f" {fields['value']} for {about}: {fields['score_id']}"))


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the score as it is published."""
    metric, trace, value = given["metric"], given["trace"], given["value"]
    if not id_fits(given["session"]):
        raise click.UsageError("--session is an id: 1 to 256 bytes without control characters")
    _check_target(metric, trace)
    metadata = _object(given["metadata"])
    if given["threshold"] is not None:
        metadata["threshold"] = given["threshold"]
    fields = {
        "session_id": given["session"],
        "trace_id": trace,
        "target": ScoreTarget.SESSION if trace is None else ScoreTarget.TRACE,
        "name": metric,
        "data_type": DataType(given["data_type"].upper()) if given["data_type"] else _type_of(value),
        "value": value,
        "source": ScoreSource(given["source"].upper()),
        "reason": given["reason"],
        "metadata": metadata,
        "eval_run_id": given["eval_run_id"],
    }
    content = json.dumps(fields, sort_keys=True)
    now = time.time_ns() // 1_000_000
    return {**fields, "score_id": given["score_id"] or digest("submitted", content), "created_at": now}


def _type_of(value: str) -> DataType:
    if value.lower() in ("true", "false"):
        return DataType.BOOLEAN
    try:
        float(value)
    except ValueError:
        raise click.UsageError(
            f"the value {value!r} is neither a number from 0 to 1 nor true or false; other text needs --type categorical"
        ) from None
    return DataType.NUMERIC


def _check_target(metric: str, trace: str | None) -> None:
    """Refuse a score that nothing would ever take as what it is meant to be."""
    known = METRICS.get(metric)
    if known is not None and known.target is ScoreTarget.TRACE and trace is None:
        raise click.UsageError(f"{metric} is about one trace: name it with --trace")
    if trace is not None and known is not None and known.target is ScoreTarget.SESSION:
        raise click.UsageError(f"{metric} is about the session as a whole: leave out --trace")


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.UsageError(f"--metadata is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError('--metadata is one JSON object, such as {"annotator": "kim"}')
    return found


async def _publish(settings: Settings, session_id: str, value: bytes) -> None:
    key = session_id.encode()
    (place,) = await reading.locate(settings, EVAL_SCORES, key=key)
    publisher = Publisher(place.connection, idempotent=(await abilities(place.connection)).fences)
    try:
        await publisher.publish([Out(place.topic, place.partitions[0], key, value)])
    finally:
        await publisher.stop()
