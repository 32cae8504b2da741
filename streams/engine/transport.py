"""Plugs the batch consumer into Faust."""

# ruff: noqa: SLF001  (Faust has no public way to do this; it is pinned)

import asyncio
from typing import Any

from faust import Schema
from faust.transport.consumer import Fetcher
from faust.transport.drivers.aiokafka import Transport
from faust.types import EventT, Message
from mode import Service

from streams.engine.consumer import BatchConsumer


class BatchFetcher(Fetcher):  # type: ignore[misc]
    """Runs the consumer's poll until it is stopped."""

    @Service.task  # type: ignore[untyped-decorator]
    async def _fetcher(self) -> None:
        # Faust's own takes a stop during a rebalance for a crash, and then crashes for good.
        try:
            await self.app.consumer._drain_messages(self)
        except asyncio.CancelledError:
            if not self.should_stop:
                raise
        finally:
            self.set_shutdown()


class GateTransport(Transport):  # type: ignore[misc]
    """Faust's aiokafka transport with our consumer."""

    Consumer = BatchConsumer
    Fetcher = BatchFetcher


class BatchSchema(Schema):  # type: ignore[misc]
    """Passes a message's value, a batch, to the stream as it is."""

    def compile(self, app: Any, **_: Any) -> Any:
        """Return the function Faust decodes messages with."""
        create_event = app.create_event

        async def decode(message: Message, **_: bool) -> EventT[Any]:
            event: EventT[Any] = create_event(None, message.value, None, message)
            return event

        return decode
