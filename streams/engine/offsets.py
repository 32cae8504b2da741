"""Asks the broker where partitions end and what a group has committed, often and cheaply."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest

from streams.engine.connection import Connection
from streams.engine.partition import TP

_READ_COMMITTED = 1
_LATEST = -1
# A topic that was just made, or has a new leader, is known to all brokers a moment later.
_SETTLING = (LeaderNotAvailableError, NotLeaderForPartitionError, UnknownTopicOrPartitionError)
_SETTLES_IN_S = 5.0
_LOOK_AGAIN_S = 0.1

_Ends = dict[TP, int]


class Offsets:
    """One connection of its own, used once a second or so. One request a broker each time.

    lists_ends: whether the broker's ListOffsets can be trusted; if not (Tansu counts the last
    batch as one record), the high water of a fetch at the end is taken.
    """

    def __init__(self, connection: Connection, *, lists_ends: bool) -> None:
        self._connection = connection
        self._lists_ends = lists_ends
        self._client: AIOKafkaClient | None = None
        self._starting = asyncio.Lock()
        self._coordinators: dict[str, int] = {}
        self._last_ends: dict[TP, int] = {}

    async def stop(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def partitions(self, topics: Collection[str]) -> list[TP]:
        """Return all partitions that the topics have now, those added a moment ago too.

        Raises KafkaError when no broker answers or a topic does not exist.
        """
        client = await self._ready()
        for topic in topics:
            client.add_topic(topic)
        if not await client.force_metadata_update():
            raise KafkaConnectionError("no broker says which partitions there are")
        found = {topic: client.cluster.partitions_for_topic(topic) for topic in topics}
        if missing := [topic for topic, numbers in found.items() if not numbers]:
            raise UnknownTopicOrPartitionError(", ".join(missing))
        return [TP(topic, number) for topic, numbers in found.items() for number in sorted(numbers)]

    async def end_offsets(self, tps: Collection[TP]) -> dict[TP, int]:
        """Return the offset after the last record that can be read now (read_committed).

        Raises KafkaError when a broker does not answer or a partition has no leader.
        """
        ends = await self._settled(self._list_ends, tps)
        if self._lists_ends:
            return ends
        for tp in tps:
            self._last_ends[tp] = max(ends[tp], self._last_ends.get(tp, 0))
        high_waters = await self._settled(self._high_waters, tps)
        self._last_ends.update(high_waters)
        return high_waters

    async def _settled(self, ask: Callable[[Collection[TP]], Awaitable[_Ends]], tps: Collection[TP]) -> _Ends:
        """Ask again while the partitions' leaders are not known yet, for some seconds."""
        deadline = time.monotonic() + _SETTLES_IN_S
        while True:
            try:
                return await ask(tps)
            except _SETTLING:
                if time.monotonic() >= deadline:
                    raise
                client = await self._ready()
                await client.force_metadata_update()
                await asyncio.sleep(_LOOK_AGAIN_S)

    async def committed(self, group: str, tps: Collection[TP]) -> dict[TP, int | None]:
        """Return the group's committed offsets; None where it has none. Raises KafkaError."""
        client = await self._ready()
        if group not in self._coordinators:
            node = await client.coordinator_lookup(CoordinationType.GROUP, group)
            self._coordinators[group] = node
        topics: dict[str, list[int]] = defaultdict(list)
        for tp in tps:
            topics[tp.topic].append(tp.partition)
        request = OffsetFetchRequest(group, list(topics.items()))
        found: dict[TP, int | None] = {}
        try:
            response = await client.send(self._coordinators[group], request, group=ConnectionGroup.COORDINATION)
            for topic, partitions in response.topics:
                for partition, offset, _, error in partitions:
                    if error:
                        raise for_code(error)(f"{topic}-{partition}")
                    found[TP(topic, partition)] = None if offset < 0 else offset
        except KafkaError:
            del self._coordinators[group]
            raise
        return {tp: found.get(tp) for tp in tps}

    async def _list_ends(self, tps: Collection[TP]) -> _Ends:
        ends: _Ends = {}
        client = await self._ready()
        for node, topics in (await self._by_leader(client, tps)).items():
            wanted = [
                (topic, [(partition, _LATEST) for partition in partitions]) for topic, partitions in topics.items()
            ]
            response = await client.send(node, OffsetRequest(-1, _READ_COMMITTED, wanted))
            for topic, answers in response.topics:
                for partition, error, *found in answers:
                    _check(topic, partition, error)
                    ends[TP(topic, partition)] = found[-1]
        return ends

    async def _high_waters(self, tps: Collection[TP]) -> _Ends:
        """Fetch at the last known ends; the answers carry the high waters."""
        ends: _Ends = {}
        client = await self._ready()
        for node, topics in (await self._by_leader(client, tps)).items():
            wanted = [
                (topic, [(number, self._last_ends[TP(topic, number)], 1) for number in numbers])
                for topic, numbers in topics.items()
            ]
            request = FetchRequest(1, 0, 1024, _READ_COMMITTED, wanted, rack_id="")
            response = await client.send(node, request)
            for topic, answers in response.topics:
                for partition, error, high_water, *_ in answers:
                    _check(topic, partition, error)
                    ends[TP(topic, partition)] = high_water
        return ends

    async def _by_leader(self, client: AIOKafkaClient, tps: Collection[TP]) -> dict[int, dict[str, list[int]]]:
        nodes: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for tp in tps:
            leader = client.cluster.leader_for_partition(tp)
            if leader is None:
                await client.add_topic(tp.topic)
                leader = client.cluster.leader_for_partition(tp)
            if leader is None or leader == -1:
                raise NotLeaderForPartitionError(f"{tp.topic}-{tp.partition}")
            nodes[leader][tp.topic].append(tp.partition)
        return nodes

    async def _ready(self) -> AIOKafkaClient:
        async with self._starting:
            if self._client is None:
                client = AIOKafkaClient(**self._connection.options())
                await client.bootstrap()
                self._client = client
            return self._client


def _check(topic: str, partition: int, error: int) -> None:
    if error:
        kind: Any = for_code(error)
        raise kind(f"{topic}-{partition}")
