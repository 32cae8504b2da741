"""Asks brokers for the ids of topics: a topic that was deleted and made again has another one."""

import asyncio
from io import BytesIO
from uuid import UUID

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import IncompatibleBrokerVersion, NotLeaderForPartitionError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

from streams.engine.connection import Connection
from streams.engine.partition import TP

_NONE = UUID(int=0)
_UNKNOWN_TOPIC = 3


class Uuid:
    """A UUID on the wire."""

    @classmethod
    def encode(cls, value: UUID) -> bytes:
        """Return its 16 bytes."""
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> UUID:
        """Read its 16 bytes."""
        return UUID(bytes=data.read(16))


class TopicIdsResponse(Response):  # type: ignore[misc]
    """Metadata 10, the first version with ids (Apache Kafka 2.8); aiokafka knows it up to 5."""

    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString()),
                ("topic_id", Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class TopicIdsRequest_v10(RequestStruct):  # type: ignore[misc]  # noqa: N801  (aiokafka's way to name versions)
    """Metadata 10."""

    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = TopicIdsResponse
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid), ("name", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicIdsRequest(Request[TopicIdsRequest_v10]):  # type: ignore[misc]
    """Asks for topics by name, and does not make them."""

    API_KEY = 3

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[TopicIdsRequest_v10]) -> TopicIdsRequest_v10:
        """Return the request as it is sent."""
        topics: list[tuple[UUID, str, dict[int, bytes]]] = [(_NONE, topic, {}) for topic in self._topics]
        make_topics = list_cluster_rights = list_topic_rights = False
        return request_struct_class(topics, make_topics, list_cluster_rights, list_topic_rights, {})


class TopicIds:
    """One connection of its own to each leader; one request at a time on it, for all who wait.

    The leader of a partition is asked, not any broker: it knew of a topic made again before it
    served its first record, while another broker may still name the old one.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: AIOKafkaClient | None = None
        self._starting = asyncio.Lock()
        self._topics: set[str] = set()
        self._waiting: dict[int, asyncio.Task[dict[str, tuple[int, UUID]]]] = {}
        self._turns: dict[int, asyncio.Lock] = {}

    async def stop(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        for task in self._waiting.values():
            task.cancel()
        if client is not None:
            await client.close()

    async def topic_id(self, tp: TP) -> str:
        """Return the id the partition's topic has now: at a time after this call.

        Empty where the broker has no ids. Raises KafkaError when there is no such topic, or
        its leader does not answer.
        """
        client = await self._ready()
        self._topics.add(tp.topic)
        await client.add_topic(tp.topic)
        if (node := client.cluster.leader_for_partition(tp)) in (None, -1):
            await client.force_metadata_update()
            node = client.cluster.leader_for_partition(tp)
        if node is None or node == -1:
            raise NotLeaderForPartitionError(f"{tp.topic}-{tp.partition}")
        if node not in self._waiting:
            self._waiting[node] = asyncio.ensure_future(self._ask(client, node))
            self._waiting[node].add_done_callback(_see)
        # Shielded: it is the answer to others too.
        error, found = (await asyncio.shield(self._waiting[node])).get(tp.topic, (_UNKNOWN_TOPIC, _NONE))
        if error:
            await client.force_metadata_update()
            raise for_code(error)(tp.topic)
        return "" if found == _NONE else str(found)

    async def _ask(self, client: AIOKafkaClient, node: int) -> dict[str, tuple[int, UUID]]:
        async with self._turns.setdefault(node, asyncio.Lock()):
            # An answer that was asked for before is of no use to who comes now.
            del self._waiting[node]
            topics = sorted(self._topics)
            try:
                response = await client.send(node, TopicIdsRequest(topics))
            except (IncompatibleBrokerVersion, NotImplementedError):
                # What aiokafka says of a broker without this version of the request.
                return dict.fromkeys(topics, (0, _NONE))
        return {name: (error, found) for error, name, found, *_ in response.topics}

    async def _ready(self) -> AIOKafkaClient:
        async with self._starting:
            if self._client is None:
                client = AIOKafkaClient(**self._connection.options())
                await client.bootstrap()
                self._client = client
            return self._client


def _see(task: "asyncio.Task[dict[str, tuple[int, UUID]]]") -> None:
    """Mark a failure as seen, also when nobody waits for it any more."""
    if not task.cancelled():
        task.exception()
