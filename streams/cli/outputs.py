"""tgate notices, needs-human, reports, settled, journal: what the stages published, as lines."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import click

from streams import reading
from streams.cli import wording
from streams.cli.following import Choice, Window, follow
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import as_json_option
from streams.cli.since import SINCE
from streams.core.model import (
    JournalEntry,
    JournalKind,
    Lane,
    NeedsHuman,
    Notice,
    Outcome,
    Report,
    Severity,
    TurnSettled,
)

_Command = TypeVar("_Command", bound=Callable[..., Any])

_WINDOW = (
    click.option("-f", "--follow", is_flag=True, help="Go on and show what comes, until Ctrl-C."),
    click.option(
        "-n", "--last", type=click.IntRange(1), metavar="N", help="The newest N only; default 100, with --follow 10."
    ),
    click.option(
        "--since", type=SINCE, metavar="WHEN", help="All since then: 90s, 15m, 2h, 3d, or a time as ISO 8601."
    ),
    click.option("--from-start", is_flag=True, help="All that the topic still holds."),
    as_json_option,
)


def reader(command: _Command) -> _Command:
    """Give a command the options that every reading command has."""
    command = common(command)
    for option in reversed(_WINDOW):
        command = option(command)
    return command


def window(*, follow: bool, last: int | None, since: int | None, from_start: bool) -> Window:
    """Return which part of a topic the options ask for."""
    if last is not None and (since is not None or from_start):
        raise click.UsageError("--last counts from the end; --since and --from-start show all: choose one of them")
    if since is not None and from_start:
        raise click.UsageError("--since and --from-start name two starts: choose one of them")
    everything = since is not None or from_start
    return Window(follow, since, None if everything else last or (10 if follow else 100))


@click.command(
    epilog=examples(
        "tgate notices --follow",
        "tgate notices --session s1 --from-start",
        "tgate notices --since 1h --severity breach --json | jq .summary",
    )
)
@click.option("--session", metavar="S", help="Of this session only; reads only the partition it is in.")
@click.option("--project", metavar="P", help="Of this project only.")
@click.option(
    "--severity",
    multiple=True,
    type=click.Choice([item.value for item in Severity]),
    help="Of this severity; may be given again.",
)
@reader
@pass_invocation
def notices(
    invocation: Invocation,
    /,
    *,
    session: str | None,
    project: str | None,
    severity: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Show the notices that agents subscribe to, each once, oldest first."""

    def wanted(item: Notice) -> bool:
        return (
            session in (None, item.session_id)
            and project in (None, item.project)
            and (not severity or item.severity in severity)
        )

    choice = Choice(reading.NOTICE, wanted, wording.notice, session, as_json)
    asyncio.run(follow(invocation.settings, choice, window(**options)))


@click.command(
    "needs-human",
    epilog=examples(
        "tgate needs-human",
        "tgate needs-human --follow --json",
    ),
)
@click.option("--project", metavar="P", help="Of this project only.")
@reader
@pass_invocation
def needs_human(invocation: Invocation, /, *, project: str | None, as_json: bool, **options: Any) -> None:
    """Show where the circuit breaker asked for a person, because too many notices came too fast.

    `tgate breaker show` says which breakers are tripped now, `tgate breaker reset PROJECT` closes one.
    """

    def wanted(item: NeedsHuman) -> bool:
        return project in (None, item.project)

    choice = Choice(reading.HUMAN, wanted, wording.needs_human, project, as_json)
    asyncio.run(follow(invocation.settings, choice, window(**options)))


@click.command(
    epilog=examples(
        "tgate reports --session s1",
        "tgate reports --follow --json | jq '[.session_id, .decision]'",
    )
)
@click.option("--session", metavar="S", help="Of this session only; reads only the partition it is in.")
@click.option("--project", metavar="P", help="Of this project only.")
@click.option("--lane", type=click.Choice([item.value for item in Lane]), help="Of this lane only.")
@reader
@pass_invocation
def reports(
    invocation: Invocation,
    /,
    *,
    session: str | None,
    project: str | None,
    lane: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show every decided turn: its tier-1 values, what was found, and what was decided."""

    def wanted(item: Report) -> bool:
        return session in (None, item.session_id) and project in (None, item.project) and lane in (None, item.lane)

    choice = Choice(reading.REPORT, wanted, wording.report, session, as_json)
    asyncio.run(follow(invocation.settings, choice, window(**options)))


@click.command(
    epilog=examples(
        "tgate settled --session s1 --follow",
        "tgate settled --outcome suppressed --since 1d",
    )
)
@click.option("--session", metavar="S", help="Of this session only; reads only the partition it is in.")
@click.option(
    "--outcome",
    multiple=True,
    type=click.Choice([item.value for item in Outcome]),
    help="With this outcome; may be given again.",
)
@reader
@pass_invocation
def settled(
    invocation: Invocation, /, *, session: str | None, outcome: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Show how each turn's diagnosis landed: none, posted, suppressed, needs_human or shadow."""

    def wanted(item: TurnSettled) -> bool:
        return session in (None, item.session_id) and (not outcome or item.outcome in outcome)

    choice = Choice(reading.SETTLED, wanted, wording.settled, session, as_json)
    asyncio.run(follow(invocation.settings, choice, window(**options)))


@click.command(
    epilog=examples(
        "tgate journal --session s1",
        "tgate journal --kind shadow --kind suppressed --from-start --json",
    )
)
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice([item.value for item in JournalKind]),
    help="Of this kind; may be given again.",
)
@click.option("--session", metavar="S", help="Of this session only; reads only the partition it is in.")
@click.option("--project", metavar="P", help="Of this project only.")
@reader
@pass_invocation
def journal(
    invocation: Invocation,
    /,
    *,
    kind: tuple[str, ...],
    session: str | None,
    project: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show every other event worth keeping: recoveries, skips, suppressed and shadow notices, late scores ..."""

    def wanted(item: JournalEntry) -> bool:
        return (
            session in (None, item.session_id) and project in (None, item.project) and (not kind or item.kind in kind)
        )

    choice = Choice(reading.ENTRY, wanted, wording.journal_entry, session, as_json)
    asyncio.run(follow(invocation.settings, choice, window(**options)))
