"""Reading without a table, as ingest does: order by time, commits, and records that are gone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import CorruptRecordException
from faust.types import TP

from streams.engine import (
    DEVELOPMENT,
    AppendFailed,
    Batch,
    Gap,
    GapCause,
    Offsets,
    Out,
    Publisher,
    Reading,
    Stage,
    abilities,
    faust_app,
)
from tests.engine.spoiling import spoil
from tests.engine.toy import QUICK
from tests.engine.workers import Cluster

SLACK_MS = 100


class Reader:
    """Keeps what its handler got."""

    def __init__(self, cluster: Cluster, reading: Reading, tmp_path) -> None:
        self.cluster, self.reading, self.directory = cluster, reading, tmp_path
        self.records: list = []
        self.gaps: list[Gap] = []
        self.recording = self.keep

    async def keep(self, gap: Gap) -> None:
        self.gaps.append(gap)

    async def handle(self, batch: Batch) -> None:
        self.records += batch.records
        batch.done()
        assert await self.app.consumer.commit()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        app = faust_app(
            self.cluster.name,
            self.cluster.connection,
            stages=[Stage("reader", (f"{self.cluster.name}-in",), self.handle, self.reading)],
            abilities=await abilities(self.cluster.connection),
            datadir=self.directory,
            tuning=replace(
                QUICK if self.cluster.broker.fences else DEVELOPMENT,
                slack_ms=SLACK_MS,
                most_slack_ms=SLACK_MS,
                patience_s=60,
            ),
            on_gap=self.recording,
        )
        self.app = app
        await app.start()
        try:
            yield
        finally:
            await app.stop()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(40):
            while not condition():  # noqa: ASYNC110  (a poll with a generous deadline)
                await asyncio.sleep(0.05)


async def publish(cluster: Cluster, *outs: Out) -> None:
    publisher = Publisher(cluster.connection, idempotent=cluster.broker.fences)
    await publisher.publish(outs)
    await publisher.stop()


async def commit(cluster: Cluster, partition: int, offset: int) -> None:
    """Commit as the group did before the test begins."""
    consumer = AIOKafkaConsumer(
        **cluster.connection.options(), group_id=cluster.name, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    await consumer.start()
    key = TopicPartition(f"{cluster.name}-in", partition)
    consumer.assign([key])
    await consumer.commit({key: offset})
    await consumer.stop()


def test_a_backlog_arrives_by_record_time_and_is_committed_at_once(cluster: Cluster, tmp_path):
    topic = f"{cluster.name}-in"
    outs = [
        Out(topic, partition, b"k", b"v", timestamp_ms=1_000_000 + 10 * number + partition)
        for partition in range(3)
        for number in range(500)
    ]

    async def check() -> None:
        await publish(cluster, *outs)
        reader = Reader(cluster, Reading(by_time=True, max_records=200), tmp_path)
        async with reader.running():
            await reader.until(lambda: len(reader.records) == len(outs))
            offsets = Offsets(cluster.connection, lists_ends=cluster.broker.fences)
            found = await offsets.committed(cluster.name, cluster.tps("in")[:3])
            assert list(found.values()) == [500, 500, 500]
            await offsets.stop()
        newest = 0
        for record in reader.records:
            assert record.timestamp >= newest - SLACK_MS
            newest = max(newest, record.timestamp)

    asyncio.run(check())


def test_a_partition_that_cannot_be_read_does_not_stop_the_others(cluster: Cluster, tmp_path):
    topic = f"{cluster.name}-in"

    async def check() -> None:
        reader = Reader(cluster, Reading(), tmp_path)
        async with reader.running():
            await reader.app.tables.wait_until_recovery_completed()
            consumer = reader.app.consumer._thread._consumer
            whole, broken = consumer.getmany, {TopicPartition(topic, 1)}

            async def getmany(*keys: TopicPartition, **how):
                if broken.intersection(keys):
                    raise CorruptRecordException("told to be corrupt")
                return await whole(*keys, **how)

            consumer.getmany = getmany
            await publish(cluster, *(Out(topic, number % 2, b"k", b"%d" % number) for number in range(40)))
            await reader.until(lambda: len(reader.records) == 20)
            assert {record.partition for record in reader.records} == {0}
            broken.clear()
            await reader.until(lambda: len(reader.records) == 40)

    asyncio.run(check())


def test_what_cannot_be_decoded_stops_nothing_and_is_told(cluster: Cluster, tmp_path):
    topic = f"{cluster.name}-in"

    async def check() -> None:
        await publish(cluster, *(Out(topic, 1, b"k", b"before") for _ in range(20)))
        async with AIOKafkaProducer(**cluster.connection.options()) as producer:
            batch = producer.create_batch()
            spoil(batch)
            await (await producer.send_batch(batch, topic, partition=1))
        reader = Reader(cluster, Reading(), tmp_path)
        async with reader.running():
            await reader.until(lambda: reader.gaps != [])
            await publish(cluster, *(Out(topic, 1, b"k", b"after") for _ in range(20)))
            await reader.until(lambda: len(reader.records) >= 41)
        assert [record.value for record in reader.records] == [b"before"] * 20 + [b"0"] + [b"after"] * 20
        assert {gap.cause for gap in reader.gaps} == {GapCause.UNREADABLE}
        assert {offset for gap in reader.gaps for offset in range(gap.start, gap.stop)} == {21, 22}, (
            "one and what its batch holds after it"
        )

    asyncio.run(check())


def test_a_client_that_goes_back_brings_no_record_twice(cluster: Cluster, tmp_path):
    async def check() -> None:
        reader = Reader(cluster, Reading(), tmp_path)
        await publish(cluster, *(Out(f"{cluster.name}-in", 0, b"k", b"v") for _ in range(5)))
        async with reader.running():
            await reader.until(lambda: len(reader.records) == 5)
            thread = reader.app.consumer._thread

            async def back() -> None:
                for tp in thread._consumer.assignment():
                    thread._consumer.seek(tp, 0)

            await thread.run(back())
            await asyncio.sleep(1)
        assert len(reader.records) == 5

    asyncio.run(check())


def test_a_partition_that_is_not_read_for_a_moment_loses_nothing(cluster: Cluster, tmp_path):
    async def check() -> None:
        reader = Reader(cluster, Reading(), tmp_path)
        async with reader.running():
            await reader.app.tables.wait_until_recovery_completed()
            assigned = reader.app.consumer.assignment()
            for number in range(3):
                await reader.app.consumer.close_lanes()
                await publish(cluster, Out(f"{cluster.name}-in", 0, b"k", b"%d" % number))
                await asyncio.sleep(0.3)
                for tp in assigned:
                    reader.app.tables._bring_up_again(tp)
                await reader.until(lambda count=number + 1: len(reader.records) == count)

    asyncio.run(check())


def test_a_topic_that_was_made_again_is_read_from_its_start(cluster: Cluster, tmp_path):
    topic = f"{cluster.name}-in"

    async def check() -> None:
        await publish(cluster, *(Out(topic, 1, b"k", b"%d" % number) for number in range(20)))
        await commit(cluster, 1, 500)
        reader = Reader(cluster, Reading(), tmp_path)
        async with reader.running():
            await reader.until(lambda: len(reader.records) == 20)
        assert reader.gaps == [Gap(TP(topic, 1), 500, 0, GapCause.BEYOND_END)]

    asyncio.run(check())


def test_nothing_is_read_past_a_gap_that_is_not_written_down(cluster: Cluster, tmp_path):
    """A worker killed between finding a gap and its journal entry comes upon the same gap again."""
    topic = f"{cluster.name}-in"
    found = Gap(TP(topic, 1), 500, 0, GapCause.BEYOND_END)

    async def check() -> None:
        await publish(cluster, *(Out(topic, 1, b"k", b"%d" % number) for number in range(20)))
        await publish(cluster, *(Out(topic, 0, b"k", b"%d" % number) for number in range(20)))
        await commit(cluster, 1, 500)
        killed = Reader(cluster, Reading(), tmp_path)
        never = asyncio.Event()

        async def hang(gap: Gap) -> None:
            await killed.keep(gap)
            await never.wait()

        killed.recording = hang
        async with killed.running():
            await killed.until(lambda: killed.gaps != [] and len(killed.records) == 20)
            await asyncio.sleep(2)
            assert {record.partition for record in killed.records} == {0}, "others go on, this one waits"
        never.set()
        offsets = Offsets(cluster.connection, lists_ends=cluster.broker.fences)
        assert await offsets.committed(cluster.name, [TP(topic, 1)]) == {TP(topic, 1): 500}
        await offsets.stop()
        reader = Reader(cluster, Reading(), tmp_path)
        async with reader.running():
            await reader.until(lambda: len(reader.records) == 20)
        assert (killed.gaps, reader.gaps) == ([found], [found])

    asyncio.run(check())


def test_a_gap_that_could_not_be_written_down_is_told_again(cluster: Cluster, tmp_path):
    topic = f"{cluster.name}-in"

    async def check() -> None:
        await publish(cluster, *(Out(topic, 1, b"k", b"%d" % number) for number in range(20)))
        await commit(cluster, 1, 500)
        reader = Reader(cluster, Reading(), tmp_path)

        async def fail_twice(gap: Gap) -> None:
            await reader.keep(gap)
            if len(reader.gaps) < 3:
                raise AppendFailed("told to fail")

        reader.recording = fail_twice
        async with reader.running():
            await reader.until(lambda: len(reader.records) == 20)
        assert reader.gaps == [Gap(TP(topic, 1), 500, 0, GapCause.BEYOND_END)] * 3

    asyncio.run(check())


@pytest.mark.kafka
@pytest.mark.parametrize("contiguous", [True, False])
def test_records_out_of_retention_are_told(cluster: Cluster, tmp_path, contiguous: bool):
    topic = f"{cluster.name}-in"

    async def check() -> None:
        await publish(cluster, *(Out(topic, 1, b"k", b"%d" % number) for number in range(60)))
        await commit(cluster, 1, 10)
        admin = AIOKafkaAdminClient(bootstrap_servers=cluster.broker.bootstrap)
        await admin.start()
        await admin.delete_records({TopicPartition(topic, 1): RecordsToDelete(before_offset=50)})
        await admin.close()
        reader = Reader(cluster, Reading(contiguous=contiguous), tmp_path)
        async with reader.running():
            await reader.until(lambda: len(reader.records) == 10)
        assert reader.gaps == [Gap(TP(topic, 1), 10, 50, GapCause.RETENTION)]

    asyncio.run(check())


@pytest.mark.kafka
@pytest.mark.parametrize("contiguous", [True, False])
def test_only_in_a_contiguous_log_a_hole_means_loss(cluster: Cluster, tmp_path, contiguous: bool):
    """Transaction markers take offsets: legal in a user's topic, a loss in a log of our own."""
    topic = f"{cluster.name}-in"

    async def check() -> None:
        async with AIOKafkaProducer(**cluster.connection.options(), transactional_id=cluster.name) as producer:
            for number in range(2):
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"%d" % number, partition=1)
        reader = Reader(cluster, Reading(contiguous=contiguous), tmp_path)
        offsets = Offsets(cluster.connection, lists_ends=True)
        tp = TP(topic, 1)
        async with reader.running():
            await reader.until(lambda: len(reader.records) == 2)
            ends = await offsets.end_offsets([tp])
            async with asyncio.timeout(20):
                while await offsets.committed(cluster.name, [tp]) != ends:  # noqa: ASYNC110  (as above)
                    await asyncio.sleep(0.1)
        await offsets.stop()
        assert [record.value for record in reader.records] == [b"0", b"1"]
        assert {gap.cause for gap in reader.gaps} == ({GapCause.MISSING} if contiguous else set())

    asyncio.run(check())
