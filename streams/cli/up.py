"""tgate up: a broker, the topics and a worker in one terminal."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, Literal, NoReturn

import click
from rich.text import Text

from streams import admin, telemetry, worker
from streams.broker import RunningBroker, apache_kafka, embedded
from streams.broker.address import ADDRESS_FILE, announce
from streams.cli.beside import evaluators_beside
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import note
from streams.cli.worker import say_ready
from streams.errors import TopicsWrong
from streams.security import connection
from streams.settings import Settings

SILENT_LOOKS: Final = 3
"""So many seconds without a connection mean that the broker has ended."""

Broker = Literal["embedded", "kafka"]


@click.command(
    epilog=examples(
        "tgate up                                       the embedded broker: at once, forgets",
        "tgate up --broker kafka                        Apache Kafka: some seconds, keeps its data",
        "tgate up --bootstrap localhost:9092            brokers that run already",
        "tgate up --evaluators --config examples/evaluators.toml",
        "tgate up -s tier1_metrics=task_completion -s gate_window=3",
    )
)
@click.option(
    "--broker",
    type=click.Choice(["embedded", "kafka"]),
    help="What to start: the embedded development broker, which keeps nothing (default), or Apache Kafka from a "
    "source checkout. Without this option, brokers that --bootstrap or the settings name are used instead.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="P", help="Port of the started broker; default a free one."
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".tgate/kafka"),
    show_default=True,
    help="Where Apache Kafka keeps its data.",
)
@click.option(
    "--evaluators",
    is_flag=True,
    help="Run evaluators beside the worker, and have the worker ask them for scores (request_evals). Where health_port "
    "is set, theirs is the next one.",
)
@common
@pass_invocation
def command(
    invocation: Invocation, broker: Broker | None, port: int | None, directory: Path, *, evaluators: bool
) -> None:
    """Run a broker, the topics and a worker in this terminal.

    Other terminals in the same directory find the broker by themselves. Ctrl-C (or SIGTERM) lets
    the worker finish what is under way, then ends the broker.
    """
    if broker and "bootstrap_servers" in invocation.overrides:
        raise click.UsageError("--broker starts a broker and --bootstrap names one that runs: choose one of them")
    telemetry.configure(invocation.loaded.settings)
    lost = threading.Event()
    try:
        with _terminating_like_ctrl_c(), ExitStack() as stack:
            settings = _settings(stack, invocation, broker, port, directory, lost)
            if evaluators:
                settings = settings.model_copy(update={"request_evals": True})
            asyncio.run(_create_topics(settings))
            if evaluators:
                stack.enter_context(evaluators_beside(invocation, settings, lost))
            code = _work(stack, settings)
    except KeyboardInterrupt:
        # Ctrl-C before the worker could take it: the blocks have ended what they started.
        code = 0
    if lost.is_set():
        raise SystemExit(1)
    note("ended" if code == 0 else Text("the worker crashed; the lines above say why", "red"))
    raise SystemExit(code)


def _settings(
    stack: ExitStack,
    invocation: Invocation,
    broker: Broker | None,
    port: int | None,
    directory: Path,
    lost: threading.Event,
) -> Settings:
    """Start a broker, unless one is named, and return the settings that lead to it."""
    named = invocation.loaded.sources["bootstrap_servers"] not in ("default", str(ADDRESS_FILE))
    if named and broker is None:
        note(f"broker: yours on {invocation.bootstrap}")
        return invocation.settings
    if broker == "kafka":
        note("starting Apache Kafka, which takes some seconds ...")
    started: RunningBroker = stack.enter_context(apache_kafka(directory, port) if broker == "kafka" else embedded(port))
    note(("broker", "green"), f": {started.describe()}")
    stack.enter_context(_watched(started, lost))
    ours = {"bootstrap_servers": tuple(started.bootstrap.split(",")), "security_protocol": "PLAINTEXT"}
    return invocation.settings.model_copy(update=ours)


def _work(stack: ExitStack, settings: Settings) -> int:
    """Tell the address, and run the worker until it ends."""
    address = ",".join(settings.bootstrap_servers)
    found_by_others = stack.enter_context(announce(address))

    def on_ready() -> None:
        say_ready(settings)
        _say_next(address, found_by_others=found_by_others)

    return worker.run(settings, on_ready)


async def _create_topics(settings: Settings) -> None:
    results = await admin.create(connection(settings), settings)
    refused = [f"{name}: {result}" for name, result in results.items() if result.startswith("refused")]
    if refused:
        raise TopicsWrong("topics could not be created:\n  " + "\n  ".join(refused))
    note(("topics", "green"), f": {len(results)}, of which created: {list(results.values()).count('created')}")


def _say_next(address: str, *, found_by_others: bool) -> None:
    """Tell the next commands to try, ready to be copied."""
    option = "" if found_by_others else f" --bootstrap {address}"
    where = f"in another terminal, same directory (the address is in {ADDRESS_FILE} until this ends)"
    note("\nTry next, ", where if found_by_others else "in another terminal", ":")
    for line in (
        f"tgate notices --follow{option}",
        f"tgate publish{option} examples/three_sessions.jsonl",
        """echo '{"session_id": "s1", "trace_id": "t1"}' | tgate publish -""" + option,
        """echo '{"session_id": "s1", "trace_id": "t1", "name": "task_completion", "value": 0.4}' | tgate publish -"""
        + option,
        f"tgate session show s1{option}",
    ):
        note("  ", (line, "cyan"))
    note("")


@contextmanager
def _watched(broker: RunningBroker, ended: threading.Event) -> Iterator[None]:
    """Say so and stop when the broker that we started ends by itself: there is nothing to wait for."""
    done = threading.Event()
    host, port = broker.bootstrap.split(",")[0].rsplit(":", 1)

    def look() -> None:
        silent = 0
        while not done.wait(1.0):
            try:
                socket.create_connection((host, int(port)), 5.0).close()
                silent = 0
            except OSError:
                silent += 1
            if silent == SILENT_LOOKS:
                ended.set()
                gone = "; what it held is gone" if broker.forgets else ""
                note(Text(f"the broker on {broker.bootstrap} has ended{gone}. Start again with `tgate up`", "red"))
                os.kill(os.getpid(), signal.SIGTERM)
                return

    thread = threading.Thread(target=look, name="broker watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


@contextmanager
def _terminating_like_ctrl_c() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt while no event loop takes it, so that the broker's block is left in order."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
