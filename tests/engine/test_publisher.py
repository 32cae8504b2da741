import asyncio

import pytest
from aiokafka.partitioner import DefaultPartitioner
from faust.types import TP

from streams.engine import AppendFailed, Connection, Offsets, Out, Publisher, TooLarge, partition_for
from tests.engine.workers import Cluster, read_all


def test_partitions_are_those_of_kafkas_default_partitioner():
    partitions = list(range(7))
    for number in range(200):
        key = b"session-%d" % number
        assert partition_for(key, 7) == DefaultPartitioner()(key, partitions, partitions)


def test_records_arrive_in_order_with_all_they_carry(cluster: Cluster):
    topic = f"{cluster.name}-out"
    outs = [Out(topic, number % 4, b"k", b"%d" % number, [("h", b"x")], 1_000 + number) for number in range(9_000)]

    async def check() -> None:
        publisher = Publisher(cluster.connection, idempotent=cluster.broker.fences)
        acks = await publisher.publish(outs)
        assert sum(ack.count for ack in acks) == len(outs)
        assert {ack.tp for ack in acks if ack.base_offset == 0} == {TP(topic, number) for number in range(4)}
        found = await read_all(cluster.connection, cluster.tps("out"))
        for partition in range(4):
            values = [int(value) for place, _, _, value in found if place == partition]
            assert values == list(range(partition, 9_000, 4))
        await publisher.stop()

    asyncio.run(check())


def test_too_large_is_known_before_anything_is_sent(cluster: Cluster):
    topic = f"{cluster.name}-out"

    async def check() -> None:
        publisher = Publisher(cluster.connection, idempotent=cluster.broker.fences, max_record=5_000)
        large = Out(topic, 0, b"k", b"x" * 5_000)
        assert not publisher.fits(large)
        with pytest.raises(TooLarge):
            await publisher.publish([Out(topic, 0, b"k", b"small"), large])
        await publisher.stop()
        assert await read_all(cluster.connection, cluster.tps("out")) == []

    asyncio.run(check())


def test_after_a_failure_the_producer_is_a_new_one(cluster: Cluster):
    topic = f"{cluster.name}-out"

    async def check() -> None:
        publisher = Publisher(cluster.connection, idempotent=cluster.broker.fences)
        await publisher.publish([Out(topic, 0, b"k", b"1")])
        first = publisher._producer
        assert first is not None
        with pytest.raises(AppendFailed):
            await publisher.publish([Out(topic, 0, b"k", b"2"), Out(topic, 99, b"k", b"no such partition")])
        assert first._closed
        await publisher.publish([Out(topic, 0, b"k", b"3")])
        assert publisher._producer is not first
        await publisher.stop()

    asyncio.run(check())


def test_no_broker_is_an_append_that_failed():
    async def check() -> None:
        publisher = Publisher(Connection("127.0.0.1:1"), idempotent=False, timeout_s=2)
        with pytest.raises(AppendFailed):
            await publisher.publish([Out("t", 0, None, b"v")])

    asyncio.run(check())


def test_ends_count_every_record_of_the_last_batch(cluster: Cluster):
    topic = f"{cluster.name}-out"

    async def check() -> None:
        publisher = Publisher(cluster.connection, idempotent=cluster.broker.fences)
        offsets = Offsets(cluster.connection, lists_ends=cluster.broker.fences)
        tps = cluster.tps("out")
        assert await offsets.end_offsets(tps) == dict.fromkeys(tps, 0)
        for total in (7, 14):
            await publisher.publish([Out(topic, 1, b"k", b"v") for _ in range(7)])
            assert (await offsets.end_offsets(tps))[tps[1]] == total
        assert await offsets.committed(f"{cluster.name}-nobody", tps) == dict.fromkeys(tps)
        await publisher.stop()
        await offsets.stop()

    asyncio.run(check())
