"""tgate session: what is known of one session, what it waits for, and why it was or was not noticed."""

import asyncio

import click
import orjson

from streams.cli import session_view
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import as_json_option, plain_data, say_json
from streams.errors import TgateError
from streams.history import History, read_history
from streams.wire import Format, Wire


@click.group(
    epilog=examples(
        "tgate session show s1",
        "tgate session show s1 --json | jq .waits",
    )
)
def group() -> None:
    """Show what is known of a session, and why it was or was not noticed."""


@group.command()
@as_json_option
@click.argument("session", metavar="SESSION")
@click.option(
    "-n", "--last", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Reports to show."
)
@common
@pass_invocation
def show(invocation: Invocation, /, *, session: str, last: int, as_json: bool) -> None:
    """Show a session: what waits and until when, its gates, and its latest reports with their decisions.

    The state is what the worker has stored; what came in the last moments may not be in it yet.
    """
    history = asyncio.run(read_history(invocation.settings, session))
    if history.state is None and not history.reports:
        raise TgateError(
            f"nothing is known of session {session!r}: no record of it has been folded, or it has expired "
            "(see the setting session_ttl_s); is a worker running?"
        )
    if as_json:
        say_json(_data(history, Wire.of(invocation.settings), last))
    else:
        session_view.show(history, last)


def _data(history: History, wire: Wire, last: int) -> dict[str, object]:
    reports = history.reports[-last:]
    return {
        "session_id": history.session_id,
        "state": plain_data(history.state),
        "waits": plain_data(history.waits),
        "unwatched": history.unwatched,
        "reports": [orjson.loads(wire.write(report, Format.JSON)) for report in reports],
        "outcomes": {
            report.turn_id: settled.outcome
            for report in reports
            if (settled := history.settled.get((report.lane, report.turn_id))) is not None
        },
        "rules_hash": history.rules.hash,
    }
