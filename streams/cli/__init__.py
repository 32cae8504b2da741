"""The command `tgate`: the only place of this package that prints."""

import importlib
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from streams import telemetry
from streams.cli import failures
from streams.cli.invocation import common
from streams.cli.manual import block


@dataclass(frozen=True)
class Entry:
    """A command of the top level, known by name before its module is loaded."""

    module: str
    attribute: str
    help: str


def _entry(name: str, text: str, attribute: str = "command") -> Entry:
    return Entry(f"streams.cli.{name}", attribute, text)


COMMANDS: Final[Mapping[str, Entry]] = {
    "demo": _entry("demo", "Watch recorded sessions of real agents raise notices."),
    "up": _entry("up", "Run a broker, the topics and a worker in this terminal."),
    "publish": _entry("publish", "Publish traces and scores from JSON lines."),
    "notices": _entry("outputs", "Show the notices that agents subscribe to.", "notices"),
    "needs-human": _entry("outputs", "Show where the circuit breaker asked for a person.", "needs_human"),
    "session": _entry("session", "Show what is known of a session, and why it was or was not noticed.", "group"),
    "reports": _entry("outputs", "Show every decided turn with its decision.", "reports"),
    "settled": _entry("outputs", "Show how each turn's diagnosis landed.", "settled"),
    "journal": _entry("outputs", "Show every other event worth keeping.", "journal"),
    "breaker": _entry("breaker", "Show the circuit breakers, or close one.", "group"),
    "cases": _entry("cases", "List the eval cases captured from posted breaches.", "group"),
    "dlq": _entry("dlq", "Show the dead letters, and publish them again.", "group"),
    "replay": _entry("replay", "Replay what was seen through the same rules or others, and compare."),
    "calibrate": _entry("calibrate", "Learn from recorded sessions which thresholds they support."),
    "export": _entry("export", "Write topics to files, one JSON object a line."),
    "runs": _entry("runs", "Ask evaluators for scores of what is there already, and see them.", "group"),
    "monitors": _entry("monitors", "Run such runs again and again.", "group"),
    "scores": _entry("scores", "Submit scores of people and programs.", "group"),
    "worker": _entry("worker", "Run the worker against brokers of your own."),
    "evaluators": _entry("evaluators", "Run what scores traces and sessions, against brokers of your own."),
    "topics": _entry("topics", "Create, list and check the topics.", "group"),
    "settings": _entry("settings", "List every setting: value, default, where it came from, meaning."),
}
"""Loaded by name when used: `tgate --help` must not wait for Kafka and Faust."""


class Commands(click.Group):
    """The top level: loads a command when it is used, and turns every failure into a sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's call)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  (click's call)
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  (click's call)
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        telemetry.hush()
        with failures.told(ctx):
            return super().invoke(ctx)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=block(
        "Try it:",
        "  tgate up                                   a broker and a worker, in this terminal",
        "  tgate publish examples/recording/sessions.jsonl.gz",
        "  tgate notices --follow                     in other terminals, same directory",
    )
    + "\n\n"
    + block(
        "Settings come from --config FILE (TOML), then TGATE_* variables, then -s NAME=VALUE;",
        "`tgate settings` lists them. These options stand before or after a command.",
    )
    + "\n\n"
    + block(
        "Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 130 interrupted.",
    ),
)
@common
@click.version_option(package_name="trajectory-gate", prog_name="tgate")
def cli() -> None:
    """Watches the scores of every AI agent session, live: climbing, stalled, or falling back?"""


def main() -> None:
    """Run tgate with the arguments of the process."""
    # What the client library thinks of a broker that is away is said in a sentence of ours instead.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        cli.main(prog_name="tgate", standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(failures.INTERRUPTED)
