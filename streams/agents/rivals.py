"""Looks for another app at work on the same topics: whatever one of them puts out, the other puts out again."""

import asyncio
from collections.abc import Collection
from typing import Final, NoReturn

import structlog
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from streams.engine import Connection, Offsets

log = structlog.get_logger(__name__)

LOOK_S: Final = 600.0
AGAIN_S: Final = 10.0
IDLE: Final = ("Empty", "Dead")
HINT: Final = (
    "it reads the same topics under another app_id: all outputs are repeated, and neither is kept from writing over the "
    "other's state; stop one of them, or give one other topic_names"
)


class Rivals:
    """Warns, and does no more: one app may be about to take over from the other."""

    def __init__(self, app_id: str, topics: Collection[str], connection: Connection, offsets: Offsets) -> None:
        self._app_id = app_id
        self._topics = topics
        self._connection = connection
        self._offsets = offsets

    async def run(self) -> NoReturn:
        """Look at once, for whoever has just started this app, and again and again."""
        while True:
            try:
                for group in await self.look():
                    log.warning("another_app", app_id=group, hint=HINT)
                await asyncio.sleep(LOOK_S)
            except Exception as error:  # noqa: BLE001  (a worker must not end because it could not look)
                log.debug("no_look_for_other_apps", error=repr(error))
                await asyncio.sleep(AGAIN_S)

    async def look(self) -> list[str]:
        """Return the other consumer groups at work that have committed offsets on every topic that the stages read.

        Only those that this worker may describe. Raises KafkaError.
        """
        tps = await self._offsets.partitions(self._topics)
        client = AIOKafkaAdminClient(**self._connection.options())
        await client.start()
        try:
            groups = sorted(group for group, _ in await client.list_consumer_groups() if group != self._app_id)
            return [group for group in groups if await self._shares(group, tps) and await _is_at_work(client, group)]
        finally:
            await client.close()

    async def _shares(self, group: str, tps: Collection[TopicPartition]) -> bool:
        committed = await self._offsets.committed(group, tps)
        return {tp.topic for tp, offset in committed.items() if offset is not None} == set(self._topics)


async def _is_at_work(client: AIOKafkaAdminClient, group: str) -> bool:
    # One by one: Tansu's answer about several groups cannot be read.
    (answer,) = await client.describe_consumer_groups([group])
    return any(state not in IDLE for _, _, state, *_ in answer.groups)
