"""tgate runs: eval runs asked for, followed, listed, retried, and their scores."""

import asyncio
from collections.abc import Callable
from textwrap import wrap
from typing import Any, Final

import click

from streams.cli import runs_show
from streams.cli.asking import asking_options, wish_of
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import block, examples
from streams.cli.output import as_json_option, clean, note, say
from streams.core.model import ScoreTarget
from streams.core.runs import EvalRun, RunStatus
from streams.evaluators.ledger import Ledger, new_id, now
from streams.evaluators.metrics import runnable

HELP_WIDTH: Final = 96
watch_option = click.option("--watch", is_flag=True, help="Show how far it is until it ends; Ctrl-C leaves it going.")


@click.group(
    epilog=examples(
        "tgate runs create -m coherence -m tool_correctness --from 1d --sample 0.1 --watch",
        "tgate runs create --target session -m agent_reliability --weight confidence=0.5",
        "tgate runs list --status RUNNING",
        "tgate runs scores 3f2a --failed",
        "tgate runs retry 3f2a --watch",
    )
)
def group() -> None:
    """Score traces or sessions that are there already: what evaluators are asked beside the ladder.

    A run is PENDING until its targets are chosen, RUNNING while evaluators work on them, then
    COMPLETED, also where every score failed; FAILED means that the run itself broke. Evaluators
    must be running: `tgate up --evaluators`, or `tgate evaluators`.
    """


@group.command(
    epilog=block(
        *wrap(f"Of traces: {', '.join(runnable(ScoreTarget.TRACE))}.", HELP_WIDTH),
        *wrap(f"Of sessions: {', '.join(runnable(ScoreTarget.SESSION))}.", HELP_WIDTH),
    )
    + "\n\n"
    + examples(
        "tgate runs create -m coherence --session s1",
        "tgate runs create -m task_completion -m confidence --project shop --tag vip --from 3d --sample 0.2",
        "tgate runs create -m coherence --id t1 --id t2 --threshold coherence=0.7",
        "tgate runs create --target session -m agent_reliability -m loop_detection --min-traces 5 --has-error",
    )
)
@asking_options
@watch_option
@as_json_option
@common
@pass_invocation
def create(invocation: Invocation, /, *, watch: bool, as_json: bool, **options: Any) -> None:
    """Ask for a run over the traces or sessions that the options pick.

    They are those ingested so far. What cannot be is refused, and nothing is created: an unknown
    metric, a weight for no signal, nothing that matches. Exit code 1 when a watched run breaks.
    """
    run = EvalRun(run_id=new_id(), created_at=now(), **wish_of(options).of_new())
    count = asyncio.run(Ledger(invocation.settings).create(run))
    targets = f"{count} {runs_show.of(run, count)}"
    _created(invocation, run, targets, watch=watch, as_json=as_json)


@group.command("list")
@click.option("--project", metavar="P", help="Of this project only.")
@click.option(
    "--status",
    multiple=True,
    type=click.Choice([item.value for item in RunStatus]),
    help="With this status; may be given again.",
)
@click.option("--ladder", is_flag=True, help="The ladder's runs as well, one a turn and tier.")
@click.option("-n", "--last", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="The newest N.")
@as_json_option
@common
@pass_invocation
def list_runs(
    invocation: Invocation,
    /,
    *,
    project: str | None,
    status: tuple[str, ...],
    ladder: bool,
    last: int,
    as_json: bool,
) -> None:
    """List the runs that are kept, oldest first: when, status, progress, what of."""

    def wanted(run: EvalRun) -> bool:
        return (
            project in (None, run.project) and (not status or run.status in status) and (ladder or run.turn_id is None)
        )

    show_runs(invocation, wanted, last, as_json=as_json)


@group.command(epilog=examples("tgate runs show 3f2a", "tgate runs show 3f2a --watch"))
@click.argument("run_id", metavar="RUN")
@watch_option
@as_json_option
@common
@pass_invocation
def show(invocation: Invocation, /, *, run_id: str, watch: bool, as_json: bool) -> None:
    """Show one run: what it was asked, how far it is, what it took. RUN is its id, or how that begins."""
    settings = invocation.settings
    run = asyncio.run(Ledger(settings).run(run_id))
    if watch:
        follow(invocation, run, as_json=as_json)
    elif as_json:
        runs_show.print_json(run)
    else:
        runs_show.show(run)


@group.command(epilog=examples("tgate runs retry 3f2a", "tgate runs retry 3f2a --watch"))
@click.argument("run_id", metavar="RUN")
@watch_option
@as_json_option
@common
@pass_invocation
def retry(invocation: Invocation, /, *, run_id: str, watch: bool, as_json: bool) -> None:
    """Ask again for exactly those scores of a run that failed: a new run. RUN is its id, or how that begins."""

    async def ask() -> tuple[EvalRun, int]:
        ledger = Ledger(invocation.settings)
        return await ledger.retry(await ledger.run(run_id))

    run, count = asyncio.run(ask())
    scores = f"{count} failed score{'s' * (count != 1)}"
    _created(invocation, run, f"{scores} of run {run.retry_of}", watch=watch, as_json=as_json)


@group.command(
    epilog=examples("tgate runs scores 3f2a", "tgate runs scores 3f2a --metric coherence --failed --json | jq .reason")
)
@click.argument("run_id", metavar="RUN")
@click.option("--metric", multiple=True, metavar="M", help="Of this metric only; may be given again.")
@click.option("--failed", is_flag=True, help="Only those without value, with why.")
@as_json_option
@common
@pass_invocation
def scores(invocation: Invocation, /, *, run_id: str, metric: tuple[str, ...], failed: bool, as_json: bool) -> None:
    """List a run's scores, and what they come to by metric. RUN is its id, or how that begins."""

    async def find() -> list[dict[str, Any]]:
        ledger = Ledger(invocation.settings)
        found = await ledger.scores(await ledger.run(run_id))
        chosen = [item for item in found if not metric or item["name"] in metric]
        return [item for item in chosen if not failed or item["status"] == "FAILED"]

    runs_show.show_scores(asyncio.run(find()), as_json=as_json)


def show_runs(invocation: Invocation, wanted: Callable[[EvalRun], bool], last: int, *, as_json: bool) -> None:
    """List runs."""
    found = [run for run in asyncio.run(Ledger(invocation.settings).runs()) if wanted(run)][-last:]
    if as_json:
        for run in found:
            runs_show.print_json(run)
    elif found:
        runs_show.show_list(found)
    else:
        note(("no run that fits is kept", "dim"))


def follow(invocation: Invocation, run: EvalRun, *, as_json: bool) -> None:
    """Show how far a run is until it ends; a run that breaks is a failure."""
    last = asyncio.run(runs_show.watch(invocation.settings, run, as_json=as_json))
    if not as_json:
        runs_show.show(last)
    if last.status is RunStatus.FAILED:
        raise SystemExit(1)


def _created(invocation: Invocation, run: EvalRun, what: str, *, watch: bool, as_json: bool) -> None:
    if as_json and not watch:
        runs_show.print_json(run)
    elif not as_json:
        say("created run ", clean(run.run_id, "bold"), f": {what}, {', '.join(run.metrics)}")
    if watch:
        follow(invocation, run, as_json=as_json)
    elif not as_json:
        note((f"`tgate runs show {run.run_id[:8]}` says how far it is", "dim"))
