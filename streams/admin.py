"""Topics on the broker: created as the settings say, listed, and checked against what the stages rely on."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.protocol.api import Response
from aiokafka.protocol.metadata import MetadataRequest

from streams.engine.connection import Connection
from streams.errors import TopicsWrong
from streams.security import unseen
from streams.settings import Settings
from streams.topics import (
    BREAKER_STATES,
    BY_ROLE,
    EVAL_LOG,
    EVAL_REQUEST_STATES,
    EVAL_REQUESTS,
    EVAL_RUN_STATES,
    EVAL_SIGNAL_STATES,
    EVAL_TRACE_STATES,
    NOTICE_CANDIDATES,
    SESSION_LOG,
    SESSION_STATES,
    TRACES,
    Cleanup,
    Topic,
    named,
)

ALREADY_EXISTS = 36
CREATED = "created"
KNOWN_WITHIN_S = 30.0
MAX_DEAD_LETTER_BYTES = 32 * 1024 * 1024
"""A dead letter holds the whole of what could not be taken, also when that was its size."""
SAME_COUNTS = (
    (
        SESSION_LOG,
        (TRACES, EVAL_REQUESTS, SESSION_STATES, EVAL_TRACE_STATES, EVAL_SIGNAL_STATES, EVAL_REQUEST_STATES),
    ),
    (NOTICE_CANDIDATES, (BREAKER_STATES,)),
    (EVAL_LOG, (EVAL_RUN_STATES,)),
)
"""Topics whose partition counts must stay equal; the table's count is the one that its state was stored under."""


@dataclass(frozen=True)
class Found:
    """A topic as it should be, and what the broker has."""

    topic: Topic
    partitions: int | None
    """None when it does not exist."""
    replicas: int | None = None


def topic_config(topic: Topic, settings: Settings) -> dict[str, str]:
    """Return the broker-side settings of a topic."""
    config = {"cleanup.policy": topic.cleanup.value}
    if topic.cleanup is not Cleanup.COMPACT:
        retention = getattr(settings, topic.retention.value)
        config["retention.ms"] = str(-1 if retention < 0 else round(retention * 1000))
    if topic.log_append_time:
        config["message.timestamp.type"] = "LogAppendTime"
    limit = MAX_DEAD_LETTER_BYTES if topic.schema is None else settings.own_record_bytes
    config["max.message.bytes"] = str(limit + 100_000)
    return config


async def create(connection: Connection, settings: Settings, roles: Collection[str] = BY_ROLE.keys()) -> dict[str, str]:
    """Create every topic that is missing, and wait until every broker knows the new ones.

    Returns:
        topic name -> `created`, `exists` or what the broker refused.
    """
    wanted = [
        NewTopic(
            topic.name,
            num_partitions=getattr(settings, topic.partitions.value),
            replication_factor=settings.replication_factor,
            topic_configs=topic_config(topic, settings),
        )
        for role, topic in named(settings.topic_names).items()
        if role in roles
    ]
    client = AIOKafkaAdminClient(**connection.options())
    await client.start()
    try:
        answer = await client.create_topics(wanted)
        results = {name: _outcome(code, *rest) for name, code, *rest in answer.topic_errors}
        with suppress(TimeoutError):
            async with asyncio.timeout(KNOWN_WITHIN_S):
                await _known_everywhere(client, [name for name, outcome in results.items() if outcome == CREATED])
    finally:
        await client.close()
    return results


def _outcome(code: int, message: str | None = None) -> str:
    if code in (0, ALREADY_EXISTS):
        return "exists" if code else CREATED
    return f"refused: {message or f'error {code}'}"


async def _known_everywhere(client: AIOKafkaAdminClient, names: list[str]) -> None:
    """Return when each broker names a leader of each partition.

    The controller answers when it has decided; brokers follow, under load seconds later, and until then they
    say that there is no such topic.
    """
    request = MetadataRequest(names, allow_auto_topic_creation=False)
    cluster = client._client.cluster  # noqa: SLF001  (the admin client offers no request to a given broker)
    for broker in cluster.brokers() if names else ():
        while not _led(await client._send_request_to_node(broker.nodeId, request)):  # noqa: ASYNC110, SLF001  (a poll)
            await asyncio.sleep(0.05)


def _led(answer: Response) -> bool:
    return all(
        not topic["error_code"] and topic["partitions"] and all(part["leader"] >= 0 for part in topic["partitions"])
        for topic in answer.to_object()["topics"]
    )


async def find(connection: Connection, settings: Settings) -> dict[str, Found]:
    """Return every topic by its default name, with what the broker has of it."""
    topics = named(settings.topic_names)
    client = AIOKafkaAdminClient(**connection.options())
    await client.start()
    try:
        # Asking for a topic by name could create it where brokers are set to do so; listing cannot.
        existing = set(await client.list_topics()) & {topic.name for topic in topics.values()}
        described = await client.describe_topics(sorted(existing)) if existing else []
    finally:
        await client.close()
    partitions = {item["topic"]: item["partitions"] for item in described}
    return {
        role: Found(topic, len(held), len(held[0]["replicas"]) if held else None)
        if (held := partitions.get(topic.name)) is not None
        else Found(topic, None)
        for role, topic in topics.items()
    }


async def configs(connection: Connection, names: list[str]) -> dict[str, dict[str, str]]:
    """Return the broker-side settings of topics by name; a broker that tells nothing gives nothing."""
    client = AIOKafkaAdminClient(**connection.options())
    await client.start()
    try:
        answers = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    finally:
        await client.close()
    return {
        resource[3]: {entry[0]: entry[1] for entry in resource[4]}
        for answer in answers
        for resource in answer.resources
    }


def problems(
    found: Mapping[str, Found], configs_by_name: Mapping[str, Mapping[str, str]], unseen_means: str = ""
) -> list[str]:
    """Return what keeps the stages from working, one sentence each with what to do.

    unseen_means: what else than missing a topic may be that is not found.
    """
    missing = [item.topic.name for item in found.values() if item.partitions is None]
    said = [f"missing: {', '.join(missing)}{unseen_means}; `tgate topics create` makes them"] if missing else []
    for leader, followers in SAME_COUNTS:
        counts = {found[role].topic.name: found[role].partitions for role in (leader, *followers) if role in found}
        if len({count for count in counts.values() if count is not None}) > 1:
            shown = ", ".join(f"{name} {count}" for name, count in counts.items() if count is not None)
            said.append(
                f"partition counts differ: {shown}; state is kept by partition, so counts cannot change: "
                f"set the old counts again, or carry what is known over with `tgate topics repartition`"
            )
    for item in found.values():
        said += _wrong_configs(item.topic, configs_by_name.get(item.topic.name, {}))
    return said


def _wrong_configs(topic: Topic, config: Mapping[str, str]) -> list[str]:
    wanted = {"cleanup.policy": topic.cleanup.value}
    if topic.log_append_time:
        wanted["message.timestamp.type"] = "LogAppendTime"
    return [
        f"{topic.name}: {name} is {config[name]}, needs {value}; change it with kafka-configs --alter"
        for name, value in wanted.items()
        if name in config and config[name] != value
    ]


async def check(
    connection: Connection, settings: Settings, roles: Collection[str] = BY_ROLE.keys()
) -> dict[str, Found]:
    """Return the topics as found.

    Raises:
        TopicsWrong: a topic is missing or not as the stages need it; the message says what to do.
    """
    found = {role: item for role, item in (await find(connection, settings)).items() if role in roles}
    existing = [item.topic.name for item in found.values() if item.partitions is not None]
    said = problems(found, await configs(connection, existing) if existing else {}, unseen(settings))
    if said:
        raise TopicsWrong("topics are not ready:\n  " + "\n  ".join(said))
    return found
