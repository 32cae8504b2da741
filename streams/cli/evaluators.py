"""tgate evaluators: what answers the evaluation ladder and the eval runs, against brokers that run elsewhere."""

import click
from rich.text import Text

from streams import telemetry, worker
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import note
from streams.evaluators.app import build
from streams.settings import Settings
from streams.topics import EVALUATORS


@click.command(
    epilog=examples(
        "tgate evaluators --bootstrap kafka-1:9092,kafka-2:9092",
        "tgate evaluators --config examples/evaluators.toml",
        "TGATE_JUDGE_API_KEY_FILE=key tgate evaluators -s judge=openai -s judge_model=NAME",
    )
)
@common
@pass_invocation
def command(invocation: Invocation) -> None:
    """Run an evaluators' worker against brokers of your own.

    It checks the topics first, then answers what workers with request_evals ask for, and eval
    runs, until Ctrl-C or SIGTERM; what is under way is finished first. Any number may run: they
    share the partitions. Judges that are slow or do not answer hold up no worker.

    Exit code 0 after a signal, 1 when it crashed, stood still for stall_exit_s or could not start.
    """
    settings = invocation.settings
    telemetry.configure(settings)
    note(f"evaluators of {settings.app_id}: connecting to {invocation.bootstrap}")
    raise SystemExit(worker.run(settings, lambda: say_ready(settings), build, EVALUATORS))


def say_ready(settings: Settings) -> None:
    """Say that the evaluators read, and who judges."""
    judge = settings.judge_model if settings.judge == "openai" else f"the offline judge `{settings.judge}`"
    embedder = settings.embedding_model if settings.embedder == "openai" else settings.embedder
    note(Text("evaluators ready", "green"), f": {judge} judges, texts are compared by {embedder}; Ctrl-C ends them")
