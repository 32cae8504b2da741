"""tgate cases: eval cases captured from posted breaches."""

import asyncio
from typing import Any

import click

from streams import reading
from streams.cli import wording
from streams.cli.following import Choice, follow
from streams.cli.invocation import Invocation, pass_invocation
from streams.cli.manual import examples
from streams.cli.outputs import reader, window
from streams.core.model import EvalCase


@click.group(
    epilog=examples(
        "tgate cases list --signature breach:tool_correctness",
        "tgate cases list --from-start --json > cases.jsonl",
    )
)
def group() -> None:
    """List the eval cases captured from posted breaches; the setting capture_eval_cases turns that on."""


@group.command("list")
@click.option("--project", metavar="P", help="Of this project only.")
@click.option("--signature", multiple=True, metavar="CONDITION:METRIC", help="With this signature; may be given again.")
@reader
@pass_invocation
def list_cases(
    invocation: Invocation, /, *, project: str | None, signature: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """List the cases: when, project, session, signatures, id. As JSON with input and baseline values."""

    def wanted(item: EvalCase) -> bool:
        return project in (None, item.project) and set(signature) <= set(item.signatures)

    choice = Choice(reading.CASE, wanted, wording.case, None, as_json)
    asyncio.run(follow(invocation.settings, choice, window(**options)))
