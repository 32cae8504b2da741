"""tgate breaker: which projects' notices are held back, and how to let them through again."""

import asyncio
import time

import click
from rich.text import Text

from streams import reading, tables
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import as_json_option, clean, clock, note, say, say_json, table
from streams.cli.output import show as show_table
from streams.core.breaker import BreakerState
from streams.core.model import BreakerReset
from streams.core.rules import seconds
from streams.engine import Out, Publisher, abilities
from streams.errors import TgateError
from streams.settings import Settings
from streams.topics import BREAKER_STATES, NOTICE_CANDIDATES
from streams.wire import Wire


@click.group(
    epilog=examples(
        "tgate breaker show",
        'tgate breaker reset checkout --reason "bad deployment rolled back"',
    )
)
def group() -> None:
    """Show the circuit breakers, or close one.

    A project with more than circuit_breaker_max_notices notices within circuit_breaker_window_s trips
    its breaker: one record in needs-human, then silence until it is quiet, or until a reset.
    """


@group.command()
@as_json_option
@click.option("--project", metavar="P", help="Of this project only.")
@common
@pass_invocation
def show(invocation: Invocation, /, *, project: str | None, as_json: bool) -> None:
    """Show each project's breaker: tripped or closed, and the notices that count."""
    settings = invocation.settings
    found = asyncio.run(_states(settings, project))
    if as_json:
        for name, state in found.items():
            say_json(_row(name, state, settings))
        return
    if not found:
        note(("no project has had a notice yet" if project is None else f"project {project} has had no notice", "dim"))
        return
    made = table("project", "breaker", "notices held", "newest", "sessions")
    for name, state in found.items():
        row = _row(name, state, settings)
        tripped = Text("tripped", "bold red") if row["tripped"] else Text("closed", "green")
        sessions = ", ".join(dict.fromkeys(item.session_id for item in state.held))
        newest = clock(state.held[-1].time) if state.held else ""
        held = f"{row['held']} of {row['max_notices']}"
        made.add_row(clean(name), tripped, held, newest, clean(sessions, "dim", 120))
    show_table(made)
    if any(state.tripped for state in found.values()):
        say(("`tgate breaker reset PROJECT` lets notices through again; so does a quiet window", "dim"))


def _row(name: str, state: BreakerState, settings: Settings) -> dict[str, object]:
    """Return a breaker as it would stand for a notice that came now."""
    horizon = _now() - seconds(settings.circuit_breaker_window_s)
    held = [item for item in state.held if item.time >= horizon]
    return {
        "project": name,
        "tripped": state.tripped and bool(held),
        "held": len(held),
        "max_notices": settings.circuit_breaker_max_notices,
        "window_s": settings.circuit_breaker_window_s,
        "notices": state.held,
    }


async def _states(settings: Settings, project: str | None) -> dict[str, BreakerState]:
    key = None if project is None else project.encode("utf-8", "surrogatepass")
    (place,) = await reading.locate(settings, BREAKER_STATES, key=key)
    prefix = tables.STATE_PREFIX
    wanted = prefix if project is None else tables.state_key(project)
    found = await reading.latest(place, lambda key: key == wanted if project is not None else key.startswith(prefix))
    named = {key[len(prefix) :].decode("utf-8", "replace"): value for key, value in sorted(found.items())}
    return {name: tables.decode_state(BreakerState, value) for name, value in named.items()}


@group.command()
@click.argument("project", metavar="PROJECT")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the journal.")
@common
@pass_invocation
def reset(invocation: Invocation, /, *, project: str, reason: str) -> None:
    """Close a project's breaker and forget the notices it held.

    It is a record on the candidates log, so it takes effect in order, once a worker has read it;
    the journal then says breaker_reset. Of a project that never had a notice nothing is known:
    then nothing is asked for, and the exit code is 1.
    """
    settings = invocation.settings
    if not asyncio.run(_states(settings, project)):
        raise TgateError(
            f"nothing is known of project {project!r}, for it has had no notice, so there is no breaker to close; "
            "`tgate breaker show` lists the projects that have had one"
        )
    asyncio.run(_reset(settings, BreakerReset(project, _now(), reason)))
    say("asked for: the breaker of ", clean(project, "bold"), " closes when a worker has read this")


async def _reset(settings: Settings, record: BreakerReset) -> None:
    key = record.project.encode("utf-8", "surrogatepass")
    (place,) = await reading.locate(settings, NOTICE_CANDIDATES, key=key)
    publisher = Publisher(place.connection, idempotent=(await abilities(place.connection)).fences)
    value = Wire.of(settings).write_internal(record)
    try:
        await publisher.publish([Out(place.topic, place.partitions[0], key, value)])
    finally:
        await publisher.stop()


def _now() -> int:
    return time.time_ns() // 1_000_000
