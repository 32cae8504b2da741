"""tgate topics: what is on the broker, and whether it is as the stages need it."""

import asyncio
from typing import Final

import click
from rich.text import Text

from streams import admin
from streams.admin import Found
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import block, examples
from streams.cli.output import as_json_option, note, say, say_json, show, table
from streams.cli.progress import Counter
from streams.errors import TopicsWrong
from streams.replay import repartition as moving
from streams.security import connection
from streams.settings import Settings

_STYLES: Final = {"created": "green", "exists": "dim"}


@click.group(
    epilog=examples(
        "tgate topics create --bootstrap localhost:9092",
        "tgate topics list --json",
        "tgate topics check && tgate worker",
    )
)
def group() -> None:
    """Create, list and check the topics; give them other partition counts."""


@group.command()
@as_json_option
@common
@pass_invocation
def create(invocation: Invocation, /, *, as_json: bool) -> None:
    """Create every topic that is missing; what exists stays as it is.

    Names, partitions, replicas and retention are settings: topic_names, input_partitions,
    log_partitions, candidate_partitions, output_partitions, replication_factor, *_retention_s.
    """
    settings = invocation.settings
    results = asyncio.run(admin.create(connection(settings), settings))
    made = table("topic", "result")
    for name, result in results.items():
        if as_json:
            say_json({"topic": name, "result": result})
        made.add_row(name, Text(result, _STYLES.get(result, "red")))
    if not as_json:
        show(made)
    if refused := sum(result.startswith("refused") for result in results.values()):
        raise TopicsWrong(f"{refused} of {len(results)} topics could not be created")


@group.command("list")
@as_json_option
@common
@pass_invocation
def list_topics(invocation: Invocation, /, *, as_json: bool) -> None:
    """List the topics: partitions, key, cleanup, retention, and what each is for."""
    settings = invocation.settings
    found = asyncio.run(admin.find(connection(settings), settings))
    if as_json:
        for role, item in found.items():
            say_json(_row(role, item, settings))
        return
    made = table("topic", "partitions", "key", "cleanup", "purpose")
    for item in found.values():
        topic = item.topic
        count = Text("missing", "red") if item.partitions is None else Text(str(item.partitions))
        made.add_row(topic.name, count, topic.key, topic.cleanup.value, Text(topic.purpose, "dim"))
    show(made)
    if any(item.partitions is None for item in found.values()):
        note("`tgate topics create` makes what is missing")


@group.command(
    epilog=block(
        "Stop all workers first. Inputs and outputs stay where they are, and nothing is published twice.",
        "The old session-log stays too, to be replayed with the old settings. What evaluators were asked",
        "and did not answer is asked again; what they have heard of sessions and spent begins anew, and so",
        "does the circuit breaker where candidate_partitions changes.",
    )
    + "\n\n"
    + examples("tgate topics repartition v2- -s log_partitions=16")
)
@click.argument("prefix")
@as_json_option
@common
@pass_invocation
def repartition(invocation: Invocation, /, *, prefix: str, as_json: bool) -> None:
    """Carry what is known into topics with other partition counts, named with PREFIX; detection goes on there.

    The counts are those of log_partitions and candidate_partitions. The new session-log begins with
    the rules in force and every session as it stands.
    """
    with Counter(visible=not as_json) as counter:
        moved = asyncio.run(moving.repartition(invocation.settings, prefix, counter.at))
    names = moved.settings.topic_names
    counts = {name: getattr(moved.settings, name) for name in ("log_partitions", "candidate_partitions")}
    if as_json:
        say_json({"sessions": moved.sessions, "traces": moved.traces, **counts, "topic_names": names})
        return
    note(f"carried over {moved.sessions} sessions, copied {moved.traces} traces")
    note("put this into the settings of every worker and client, then start the workers:")
    for name, count in counts.items():
        say(f"{name} = {count}")
    say("topic_names = { ", ", ".join(f'{role} = "{name}"' for role, name in names.items()), " }")


def _row(role: str, item: Found, settings: Settings) -> dict[str, object]:
    topic = item.topic
    return {
        "topic": topic.name,
        "role": role,
        "exists": item.partitions is not None,
        "partitions": item.partitions,
        "replicas": item.replicas,
        "key": topic.key,
        "schema": topic.schema,
        "config": admin.topic_config(topic, settings),
        "purpose": topic.purpose,
    }


@group.command()
@as_json_option
@common
@pass_invocation
def check(invocation: Invocation, /, *, as_json: bool) -> None:
    """Check that the topics are as the stages need them; exit code 1 when they are not."""
    settings = invocation.settings
    try:
        found = asyncio.run(admin.check(connection(settings), settings))
    except TopicsWrong as error:
        if not as_json:
            raise
        say_json({"ready": False, "problems": [line.strip() for line in str(error).splitlines()[1:]]})
        raise SystemExit(1) from None
    if as_json:
        say_json({"ready": True, "problems": []})
    else:
        say((f"all {len(found)} topics are as the stages need them", "green"))
