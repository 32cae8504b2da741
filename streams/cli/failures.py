"""What goes wrong, as one sentence on stderr and an exit code."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    NoBrokersAvailable,
    NodeNotReadyError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from streams.cli.invocation import Invocation
from streams.cli.output import clean, note
from streams.errors import BadRun, BadSettings, TgateError
from streams.security import refusal

FAILED: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130

_FORBIDDEN = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
_UNREACHED = (KafkaConnectionError, NodeNotReadyError, NoBrokersAvailable, ConnectionError, TimeoutError)


@contextmanager
def told(ctx: click.Context) -> Iterator[None]:
    """Run a command; whatever it raises on purpose ends it with a sentence, never with a traceback."""
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)
    except BrokenPipeError:
        _mute_stdout()
        ctx.exit(0)
    except (BadSettings, BadRun) as error:
        say(str(error))
        ctx.exit(MISUSED)
    except TgateError as error:
        say(_of_ours(error, ctx))
        ctx.exit(FAILED)
    except (KafkaError, ConnectionError, TimeoutError) as error:
        say(_of_kafka(error, ctx))
        ctx.exit(FAILED)


def say(message: str) -> None:
    """Print an error, each of its lines made safe for a terminal."""
    first, *rest = message.splitlines() or ["failed without a word"]
    note(("error: ", "bold red"), clean(first, limit=4000))
    for line in rest:
        note("       ", clean(line, limit=4000))


def explain(error: BaseException, bootstrap: str) -> str:
    """Say in a sentence what the broker did or did not do, and what can be done about it."""
    if isinstance(error, _UNREACHED):
        return (
            f"no broker answers at {bootstrap}; start one with `tgate up`, "
            "or name yours with --bootstrap HOST:PORT or the setting bootstrap_servers"
        )
    if isinstance(error, _FORBIDDEN):
        return f"the broker at {bootstrap} does not allow it: {error!r}; the login needs that right"
    return f"the broker at {bootstrap} refused: {error!r}"


def _of_ours(error: TgateError, ctx: click.Context) -> str:
    """An engine error wraps what Kafka's client raised; that says more than the wrapping."""
    cause = error.__cause__
    return _of_kafka(cause, ctx) if isinstance(cause, KafkaError | TimeoutError) else str(error)


def _of_kafka(error: BaseException, ctx: click.Context) -> str:
    """A login or certificate that is refused reaches us as a broker that cannot be reached: ask which it is."""
    if isinstance(error, _UNREACHED) and (said := _refusal(ctx)) is not None:
        return said
    return explain(error, _address(ctx))


def _refusal(ctx: click.Context) -> str | None:
    with suppress(BadSettings):
        settings = ctx.ensure_object(Invocation).settings
        if settings.security_protocol != "PLAINTEXT":
            return asyncio.run(refusal(settings))
    return None


def _address(ctx: click.Context) -> str:
    try:
        return ctx.ensure_object(Invocation).bootstrap
    except BadSettings:
        return "an unknown address"


def _mute_stdout() -> None:
    """Point stdout elsewhere, or Python complains about the pipe once more when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
