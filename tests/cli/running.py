"""tgate in this process, and topics of the tests' own."""

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner, Result

from streams import reading
from streams.agents.outbox import Outbox
from streams.broker import RunningBroker
from streams.cli import cli
from streams.engine import Out, Publisher
from streams.security import connection
from streams.settings import Settings, load
from streams.topics import BY_ROLE, named
from streams.wire import Wire

Run = Callable[..., Result]
PARTITIONS = 2


@dataclass(frozen=True)
class Topics:
    """Topics with names of their own, and the variables that lead tgate to them."""

    environ: dict[str, str]

    @property
    def settings(self) -> Settings:
        return load(environ=self.environ).settings

    def run(self, *args: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, args, input=stdin, env=self.environ)

    def put(self, outputs: Iterable[Any], *raw: Out) -> None:
        """Publish records as the stages do."""
        asyncio.run(self._put(outputs, raw))

    async def _put(self, outputs: Iterable[Any], raw: Iterable[Out]) -> None:
        settings = self.settings
        outbox = Outbox(Wire.of(settings), named(settings.topic_names), dict.fromkeys(BY_ROLE, PARTITIONS))
        publisher = Publisher(connection(settings), idempotent=False)
        try:
            await publisher.publish([*map(outbox.record, outputs), *raw])
        finally:
            await publisher.stop()

    def records(self, role: str) -> list[Any]:
        """Read all records of a topic."""

        async def read() -> list[Any]:
            (place,) = await reading.locate(self.settings, role)
            return [record async for page in reading.pages(place) for record in page.records]

        return asyncio.run(read())


def topics_of_its_own(broker: RunningBroker) -> Topics:
    """Return names of topics that do not exist yet."""
    prefix = f"cli-{secrets.token_hex(4)}-"
    counts = ("INPUT", "LOG", "CANDIDATE", "OUTPUT")
    return Topics(
        {
            "TGATE_BOOTSTRAP_SERVERS": broker.bootstrap,
            "TGATE_TOPIC_NAMES": json.dumps({role: prefix + role for role in BY_ROLE}),
            "TGATE_APP_ID": prefix + "app",
            "TGATE_SESSION_TIMEOUT_S": "6",
            **{f"TGATE_{name}_PARTITIONS": str(PARTITIONS) for name in counts},
        }
    )
