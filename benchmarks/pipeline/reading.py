"""Topics that carry the broker's times, and topics read back whole."""

from collections.abc import Collection

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from faust.types import TP

from streams import admin
from streams.engine import Offsets, abilities
from streams.security import connection
from streams.settings import Settings
from streams.topics import named


async def create_stamped(settings: Settings, roles: Collection[str]) -> None:
    """Make all of our topics; those of *roles* get the broker's append time on each record, where it has one."""
    reach = connection(settings)
    stamped = [
        NewTopic(
            topic.name,
            getattr(settings, topic.partitions.value),
            settings.replication_factor,
            topic_configs={**admin.topic_config(topic, settings), "message.timestamp.type": "LogAppendTime"},
        )
        for role, topic in named(settings.topic_names).items()
        if role in roles
    ]
    client = AIOKafkaAdminClient(**reach.options())
    await client.start()
    try:
        await client.create_topics(stamped)
    finally:
        await client.close()
    await admin.create(reach, settings)


async def read_all(settings: Settings, role: str) -> list[tuple[bytes, int]]:
    """Return value and time in milliseconds of each record that a topic of ours holds now."""
    topic = named(settings.topic_names)[role]
    tps = [TP(topic.name, number) for number in range(getattr(settings, topic.partitions.value))]
    reach = connection(settings)
    offsets = Offsets(reach, lists_ends=(await abilities(reach)).fences)
    ends = await offsets.end_offsets(tps)
    await offsets.stop()
    found: list[tuple[bytes, int]] = []
    keys = {TopicPartition(*tp): end for tp, end in ends.items() if end}
    if not keys:
        return found
    consumer = AIOKafkaConsumer(**reach.options(), auto_offset_reset="earliest", isolation_level="read_committed")
    await consumer.start()
    consumer.assign(list(keys))
    try:
        while any([await consumer.position(key) < end for key, end in keys.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += [(record.value, record.timestamp) for record in records]
    finally:
        await consumer.stop()
    return found
