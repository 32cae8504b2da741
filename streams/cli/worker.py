"""tgate worker: the three stages, against brokers that run elsewhere."""

import click
from rich.text import Text

from streams import telemetry
from streams import worker as process
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import note
from streams.settings import Settings


@click.command(
    epilog=examples(
        "tgate worker --bootstrap kafka-1:9092,kafka-2:9092",
        "tgate worker --config tgate.toml -s log_format=json",
        "TGATE_STORE=rocksdb tgate worker",
    )
)
@common
@pass_invocation
def command(invocation: Invocation) -> None:
    """Run the worker against brokers of your own.

    It checks the topics first (`tgate topics create` makes them), then reads traces and
    scores and publishes reports and notices until Ctrl-C or SIGTERM, after which it finishes
    what is under way. Any number may run: they share the partitions.

    Exit code 0 after a signal, 1 when it crashed, stood still for stall_exit_s or could not start.
    """
    settings = invocation.settings
    telemetry.configure(settings)
    note(f"worker {settings.app_id}: connecting to {invocation.bootstrap}")
    raise SystemExit(process.run(settings, lambda: say_ready(settings)))


def say_ready(settings: Settings) -> None:
    """Say that the worker reads, and what it looks for."""
    note(
        Text("ready", "green"),
        f": watching {', '.join(settings.tier1_metrics)}; "
        f"stall after {settings.gate_window} traces, regression at -{settings.gate_drop:g}; Ctrl-C ends it",
    )
