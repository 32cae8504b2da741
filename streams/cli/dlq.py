"""tgate dlq: what could not be taken, why, and how it gets a second chance."""

import asyncio
import base64
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.text import Text

from streams import letters
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import as_json_option, clean, clock, note, say, say_json, show, table
from streams.cli.since import SINCE
from streams.letters import Letter, Wanted
from streams.security import connection

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILTERS = (
    click.option("--topic", metavar="T", help="That came from this topic only."),
    click.option("--error", metavar="E", help="With this error class only, such as InvalidValue."),
    click.option("--containing", metavar="TEXT", help="With this text in the reason or in the value."),
    click.option("--since", type=SINCE, metavar="WHEN", help="Since then: 90s, 15m, 2h, 3d, or a time as ISO 8601."),
)


def filters(command: _Command) -> _Command:
    """Give a command the options that choose dead letters."""
    command = common(command)
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@click.group(
    epilog=examples(
        "tgate dlq list",
        "tgate dlq list --error InvalidValue --since 1h",
        "tgate dlq show 3:117",
        "tgate dlq redrive --topic eval-scores --error UnknownSchema --dry-run",
    )
)
def group() -> None:
    """Show the dead letters, and publish them again once the cause is mended.

    Records that cannot be taken go to dead-letters with their original key, value and headers, and the reason.
    """


@group.command("list")
@as_json_option
@filters
@pass_invocation
def list_letters(invocation: Invocation, /, *, as_json: bool, **options: Any) -> None:
    """List dead letters: when, place, where they came from, why, and when they were published again, if they were."""
    found = asyncio.run(_find(invocation, _wanted(**options)))
    if as_json:
        for letter in found:
            say_json(_row(letter))
        return
    made = table("when", "place", "came from", "redriven", "error", "reason")
    for letter in found:
        origin = f"{letter.topic}-{letter.topic_partition}:{letter.topic_offset}"
        redriven = "" if letter.redriven is None else clock(letter.redriven)
        why = clean(letter.error), clean(letter.message, limit=200)
        made.add_row(clock(letter.time), letter.place, clean(origin), redriven, *why)
    if found:
        show(made)
    by_error = ", ".join(f"{error} {count}" for error, count in Counter(letter.error for letter in found).most_common())
    again = sum(letter.redriven is not None for letter in found)
    note(f"{len(found)} dead letters" + (f": {by_error}" if found else "") + (f"; {again} redriven" if again else ""))


@group.command("show")
@click.argument("place", metavar="PARTITION:OFFSET")
@as_json_option
@common
@pass_invocation
def show_letter(invocation: Invocation, /, *, place: str, as_json: bool) -> None:
    """Show one dead letter whole."""
    found = asyncio.run(_find(invocation, Wanted(places=frozenset({place}))))
    if not found:
        raise click.ClickException(f"there is no dead letter at {place}; `tgate dlq list` shows their places")
    (letter,) = found
    if as_json:
        say_json(_row(letter))
        return
    for name, value in _row(letter).items():
        if name not in ("value", "value_base64"):
            say((f"{name:<12} ", "dim"), clean(str(value)))
    say(Text("\n"), clean((letter.value or b"").decode("utf-8", "replace"), limit=10_000))


@group.command()
@click.argument("places", nargs=-1, metavar="[PARTITION:OFFSET]...")
@click.option("--all", "everything", is_flag=True, help="All of them, when nothing else chooses.")
@click.option("--dry-run", is_flag=True, help="Say what would be published, and publish nothing.")
@filters
@pass_invocation
def redrive(
    invocation: Invocation, /, *, places: tuple[str, ...], everything: bool, dry_run: bool, **options: Any
) -> None:
    """Publish dead letters again, as they came, to the topic and partition they came from.

    Only traces and scores: a letter from one of the stages' own logs has been folded as absent, and stays so.
    Letters that were published again before are left out, unless their places are named.
    """
    wanted = _wanted(places=frozenset(places), **options)
    if wanted == Wanted() and not everything:
        raise click.UsageError("say which: places, a filter such as --error InvalidValue, or --all")
    settings = invocation.settings
    matching = asyncio.run(_find(invocation, wanted))
    found = [letter for letter in matching if letter.redriven is None or letter.place in places]
    if before := len(matching) - len(found):
        note((f"left out {before} that were redriven before; name their places to publish them once more", "dim"))
    names = {settings.topic_names.get(role, role) for role in letters.INPUTS}
    if dry_run:
        going = [letter for letter in found if letter.topic in names]
        note(f"would publish {len(going)} of {len(found)} again: " + _by_topic(going))
        return
    sent, left = asyncio.run(letters.redrive(settings, connection(settings), found))
    note(f"published {sent} again: " + _by_topic([letter for letter in found if letter.topic in names]))
    if left:
        note(
            Text(
                f"left {len(left)} where they are, for they did not come from an input topic: {_by_topic(left)}",
                "yellow",
            )
        )


async def _find(invocation: Invocation, wanted: Wanted) -> list[Letter]:
    return await letters.find(invocation.settings, wanted)


def _wanted(
    *,
    topic: str | None,
    error: str | None,
    containing: str | None,
    since: int | None,
    places: frozenset[str] = frozenset(),
) -> Wanted:
    return Wanted(topic, error, containing, places, since)


def _by_topic(found: list[Letter]) -> str:
    counts = Counter(letter.topic or "unknown" for letter in found)
    return ", ".join(f"{topic} {count}" for topic, count in counts.most_common()) or "none"


def _row(letter: Letter) -> dict[str, object]:
    row: dict[str, object] = {
        "place": letter.place,
        "time": letter.time,
        "topic": letter.topic,
        "partition": letter.topic_partition,
        "offset": letter.topic_offset,
        "error": letter.error,
        "message": letter.message,
        "key": None if letter.key is None else letter.key.decode("utf-8", "replace"),
        "redriven": letter.redriven,
        "headers": {name: value and value.decode("utf-8", "replace") for name, value in letter.headers},
    }
    try:
        row["value"] = None if letter.value is None else letter.value.decode()
    except UnicodeDecodeError:
        row["value_base64"] = base64.b64encode(letter.value or b"").decode()
    return row
