"""tgate monitors: runs that come again and again."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from streams.cli import monitors_show
from streams.cli.asking import CLEARABLE, asking_options, wish_of
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import block, examples
from streams.cli.output import as_json_option, clean, note, say, say_json
from streams.cli.runs import follow, show_runs, watch_option
from streams.core.eval_log import EvalEvent
from streams.core.monitors import Monitor, MonitorDeleted, MonitorPaused, MonitorResumed
from streams.core.runs import EvalRun
from streams.evaluators.cadence import check_cadence, next_time
from streams.evaluators.ledger import Ledger, new_id, now

monitor_argument = click.argument("which", metavar="MONITOR")
cadence_option = click.option("--cadence", metavar="C", help="every_6h, daily, weekly, or cron: and five fields, UTC.")


@click.group(
    epilog=examples(
        "tgate monitors create -m coherence -m confidence --cadence daily --sample 0.1 --name nightly",
        "tgate monitors create -m tool_correctness --cadence 'cron:0 6 * * 1-5' --project shop",
        "tgate monitors trigger nightly --watch",
        "tgate monitors pause nightly",
        "tgate monitors runs nightly",
    )
)
def group() -> None:
    """Score again and again what comes in: runs that start by themselves.

    Evaluators must be running: one of them starts a monitor's runs, and another one takes over
    when it dies. Times that were missed meanwhile become one run. A run that breaks stops
    nothing: it is journaled, with how many broke in a row. MONITOR is a name or an id, or how the
    id begins.
    """


@group.command(
    epilog=block(
        "every_6h, daily and weekly count from now; cron: takes minute, hour, day of the month, month,",
        "day of the week, in UTC.",
    )
    + "\n\n"
    + examples(
        "tgate monitors create -m coherence --cadence every_6h --name quick",
        "tgate monitors create --target session -m agent_reliability --cadence weekly --always",
    )
)
@asking_options
@cadence_option
@click.option("--always", is_flag=True, help="Run also when nothing of the project was ingested since the last run.")
@as_json_option
@common
@pass_invocation
def create(invocation: Invocation, /, *, cadence: str | None, always: bool, as_json: bool, **options: Any) -> None:
    """Create a monitor: it runs what `tgate runs create` would with the same options, each time it is due."""
    if cadence is None:
        raise click.UsageError("say how often with --cadence: every_6h, daily, weekly or 'cron:0 3 * * *'")
    at = now()
    monitor = Monitor(
        monitor_id=new_id(),
        cadence=cadence,
        created_at=at,
        only_if_changed=not always,
        next_run_at=next_time(check_cadence(cadence), at),
        **wish_of(options).of_new(),
    )
    asyncio.run(Ledger(invocation.settings).put(monitor, is_new=True))
    if as_json:
        monitors_show.print_json(monitor)
    else:
        say("created monitor ", clean(monitor.monitor_id, "bold"), f": {monitors_show.next_run(monitor)}")


@group.command("list")
@click.option("--project", metavar="P", help="Of this project only.")
@as_json_option
@common
@pass_invocation
def list_monitors(invocation: Invocation, /, *, project: str | None, as_json: bool) -> None:
    """List the monitors, oldest first: how often, when they ran last and run next, what of."""
    found = asyncio.run(Ledger(invocation.settings).monitors())
    found = [monitor for monitor in found if project in (None, monitor.project)]
    if as_json:
        for monitor in found:
            monitors_show.print_json(monitor)
    elif found:
        monitors_show.show_list(found)
    else:
        note(("there is no monitor", "dim"))


@group.command(epilog=examples("tgate monitors show nightly", "tgate monitors show 3f2a --json | jq .next_run_at"))
@monitor_argument
@as_json_option
@common
@pass_invocation
def show(invocation: Invocation, /, *, which: str, as_json: bool) -> None:
    """Show one monitor."""
    monitor = asyncio.run(Ledger(invocation.settings).monitor(which))
    if as_json:
        monitors_show.print_json(monitor)
    else:
        monitors_show.show(monitor)


@group.command(
    epilog=examples(
        "tgate monitors update nightly --sample 0.5 --cadence weekly",
        "tgate monitors update nightly -m coherence --clear filters --tag vip",
    )
)
@monitor_argument
@asking_options
@cadence_option
@click.option("--only-if-changed/--always", default=None, help="Run only when something was ingested, or always.")
@click.option("--clear", multiple=True, type=click.Choice(CLEARABLE), help="As if never said; may be given again.")
@as_json_option
@common
@pass_invocation
def update(
    invocation: Invocation,
    /,
    *,
    which: str,
    cadence: str | None,
    only_if_changed: bool | None,
    clear: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Change what a monitor scores, or how often; what is not said stays as it is.

    What may be given again replaces all that was given before. Another cadence counts from now.
    """

    async def change() -> Monitor:
        ledger = Ledger(invocation.settings)
        wanted = wish_of(options).over(await ledger.monitor(which), clear)
        if only_if_changed is not None:
            wanted = replace(wanted, only_if_changed=only_if_changed)
        if cadence is not None:
            wanted = replace(wanted, cadence=cadence, next_run_at=next_time(check_cadence(cadence), now()))
        await ledger.put(wanted)
        return wanted

    wanted = asyncio.run(change())
    if as_json:
        monitors_show.print_json(wanted)
    else:
        _asked("change", wanted)


@group.command(epilog=examples("tgate monitors pause nightly"))
@monitor_argument
@as_json_option
@common
@pass_invocation
def pause(invocation: Invocation, /, *, which: str, as_json: bool) -> None:
    """Let a monitor run only when it is triggered; a second time changes nothing."""
    _tell(invocation, which, "pause", lambda monitor: MonitorPaused(monitor.monitor_id), as_json=as_json)


@group.command(epilog=examples("tgate monitors resume nightly"))
@monitor_argument
@as_json_option
@common
@pass_invocation
def resume(invocation: Invocation, /, *, which: str, as_json: bool) -> None:
    """Let a paused monitor run by itself again; its cadence counts from now. A second time changes nothing."""

    def event(monitor: Monitor) -> MonitorResumed:
        return MonitorResumed(monitor.monitor_id, next_time(monitor.cadence, now()))

    _tell(invocation, which, "resume", event, as_json=as_json)


@group.command(epilog=examples("tgate monitors delete nightly"))
@monitor_argument
@as_json_option
@common
@pass_invocation
def delete(invocation: Invocation, /, *, which: str, as_json: bool) -> None:
    """Delete a monitor for good; its runs and their scores stay."""
    _tell(invocation, which, "delete", lambda monitor: MonitorDeleted(monitor.monitor_id), as_json=as_json)


@group.command(epilog=examples("tgate monitors trigger nightly", "tgate monitors trigger nightly --watch"))
@monitor_argument
@watch_option
@as_json_option
@common
@pass_invocation
def trigger(invocation: Invocation, /, *, which: str, watch: bool, as_json: bool) -> None:
    """Run a monitor now: also while it is paused, and also when nothing has changed. Its schedule stays."""

    async def ask() -> tuple[Monitor, str]:
        ledger = Ledger(invocation.settings)
        monitor = await ledger.monitor(which)
        return monitor, await ledger.trigger(monitor)

    monitor, run_id = asyncio.run(ask())
    if as_json and not watch:
        say_json({"monitor_id": monitor.monitor_id, "run_id": run_id})
    elif not as_json:
        say("asked for run ", clean(run_id, "bold"), " of monitor ", clean(monitor.name or monitor.monitor_id))
    if watch:
        run = EvalRun(run_id, monitor.project, monitor.name, monitor.target, monitor.metrics, now())
        follow(invocation, run, as_json=as_json)


@group.command("runs", epilog=examples("tgate monitors runs nightly --last 10"))
@monitor_argument
@click.option("-n", "--last", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="The newest N.")
@as_json_option
@common
@pass_invocation
def list_runs(invocation: Invocation, /, *, which: str, last: int, as_json: bool) -> None:
    """List a monitor's runs that are kept, oldest first."""
    monitor_id = asyncio.run(Ledger(invocation.settings).monitor(which)).monitor_id
    show_runs(invocation, lambda run: run.monitor_id == monitor_id, last, as_json=as_json)


def _tell(
    invocation: Invocation, which: str, what: str, event: Callable[[Monitor], EvalEvent], *, as_json: bool
) -> None:
    """Append an event about a monitor that exists."""

    async def ask() -> Monitor:
        ledger = Ledger(invocation.settings)
        monitor = await ledger.monitor(which)
        await ledger.tell(event(monitor))
        return monitor

    monitor = asyncio.run(ask())
    if as_json:
        say_json({"monitor_id": monitor.monitor_id, "asked_for": what})
    else:
        _asked(what, monitor)


def _asked(what: str, monitor: Monitor) -> None:
    name = clean(monitor.name or monitor.monitor_id, "bold")
    say("asked for: ", what, " monitor ", name, ", as soon as an evaluator has read this")
