"""A topic that was deleted and made again: none of its records is taken for a repeat of the old one's."""

import asyncio
import time
from io import BytesIO
from uuid import UUID

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, NotLeaderForPartitionError
from faust.types import TP

from streams.engine import Batch, Out, Reading, TopicIds, TopicReplaced
from streams.engine.lanes import Lane
from streams.engine.topic_ids import TopicIdsRequest, TopicIdsRequest_v10, TopicIdsResponse
from tests.engine.test_lanes import record
from tests.engine.test_reading import Reader, commit, publish
from tests.engine.toy import PARTITIONS
from tests.engine.workers import Cluster


class Applied(Reader):
    """Applies each source position once, as the fold of the session log does."""

    def __init__(self, cluster: Cluster, tmp_path) -> None:
        super().__init__(cluster, Reading(), tmp_path)
        self.last: dict[tuple[str, int], int] = {}
        self.values: list[bytes] = []
        self.repeats = 0
        self.commits = True

    async def handle(self, batch: Batch) -> None:
        await batch.check_topic()
        topic_id = batch.topic_id
        for each in batch.records:
            if each.offset <= self.last.get((topic_id, each.partition), -1):
                self.repeats += 1
                continue
            self.last[topic_id, each.partition] = each.offset
            self.values.append(each.value)
        batch.done()
        if self.commits:
            assert await self.app.consumer.commit()

    def new(self) -> int:
        return sum(value.startswith(b"new") for value in self.values)


async def make_again(cluster: Cluster, pause_s: float = 0.0) -> None:
    await delete_and_create(cluster.broker.bootstrap, f"{cluster.name}-in", PARTITIONS, pause_s)


async def delete_and_create(bootstrap: str, topic: str, partitions: int, pause_s: float = 0.0) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.delete_topics([topic])
    await asyncio.sleep(pause_s)
    async with asyncio.timeout(20):
        # Apache Kafka refuses the name until it has forgotten the old topic.
        while (await admin.create_topics([NewTopic(topic, partitions, 1)])).topic_errors[0][1]:  # noqa: ASYNC110  (a poll)
            await asyncio.sleep(0.02)
    await admin.close()


def outs(cluster: Cluster, word: str, counts: dict[int, int]) -> list[Out]:
    return [
        Out(f"{cluster.name}-in", partition, b"k", f"{word} {partition}:{number}".encode())
        for partition, count in counts.items()
        for number in range(count)
    ]


# Fewer records than before, more, and more than had been committed but not more than there were.
OLD = {0: 200, 1: 30, 2: 300}
NEW = {0: 20, 1: 400, 2: 299}


@pytest.mark.parametrize("pause_s", [0.0, 3.0])
def test_a_worker_that_runs_applies_every_record_of_both(cluster: Cluster, tmp_path, pause_s: float):
    async def check() -> None:
        await publish(cluster, *outs(cluster, "old", OLD))
        reader = Applied(cluster, tmp_path)
        async with reader.running():
            await reader.until(lambda: len(reader.values) == sum(OLD.values()))
            await make_again(cluster, pause_s)
            await publish(cluster, *outs(cluster, "new", NEW))
            await reader.until(lambda: reader.new() >= sum(NEW.values()))
        assert len(reader.values) == len(set(reader.values)) == sum(OLD.values()) + sum(NEW.values())

    asyncio.run(check())


@pytest.mark.parametrize("again", [True, False])
def test_a_worker_that_was_stopped_meanwhile(cluster: Cluster, tmp_path, again: bool):
    """It applies every new record of a topic made again, and in a topic that was not it knows repeats."""

    async def check() -> None:
        await publish(cluster, *outs(cluster, "old", OLD))
        reader = Applied(cluster, tmp_path)
        async with reader.running():
            await reader.until(lambda: len(reader.values) == sum(OLD.values()))
        if again:
            await make_again(cluster)
        else:
            # As after a crash before any commit.
            for partition in range(PARTITIONS):
                await commit(cluster, partition, 0)
        await publish(cluster, *outs(cluster, "new", NEW))
        async with reader.running():
            await reader.until(lambda: reader.new() >= sum(NEW.values()))
        assert len(reader.values) == len(set(reader.values)) == sum(OLD.values()) + sum(NEW.values())
        assert reader.repeats == (0 if again else sum(OLD.values()))

    asyncio.run(check())


def test_ids_of_one_name(cluster: Cluster):
    tp = cluster.tps("in")[0]

    async def check() -> None:
        ids = TopicIds(cluster.connection)
        first, second = await asyncio.gather(ids.topic_id(tp), ids.topic_id(tp))
        assert first == second == str(UUID(first))
        await make_again(cluster)
        assert await settled(ids, tp) != first
        with pytest.raises(NotLeaderForPartitionError):
            await ids.topic_id(tp._replace(topic=f"{cluster.name}-none"))
        await ids.stop()

    asyncio.run(check())


async def settled(ids: TopicIds, tp) -> str:
    deadline = time.monotonic() + 10
    while True:
        try:
            return await ids.topic_id(tp)
        except KafkaError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)


def test_a_batch_of_a_topic_that_was_replaced_has_no_id():
    async def now(_: object) -> str:
        return "b"

    async def check() -> None:
        lane = Lane(TP("t", 0), Reading(), 0)
        lane.topic_id, lane.ask_topic_id = "a", now
        with pytest.raises(TopicReplaced, match="it was a, now it is b"):
            await Batch(lane, [record(0)], 1).check_topic()
        lane.topic_id = "b"
        batch = Batch(lane, [record(0)], 1)
        await batch.check_topic()
        assert batch.topic_id == "b"

    asyncio.run(check())


def test_the_request_and_its_answer_on_the_wire():
    request = TopicIdsRequest(["tt"]).build(TopicIdsRequest_v10)
    assert request.encode().hex(" ", 1) == " ".join(["02", *["00"] * 16, "03 74 74 00", "00 00 00", "00"])
    assert request.build_request_header(7, "me").encode().hex() == "0003000a00000007" + "00026d6500"
    topic_id = "0123456789abcdef0123456789abcdef"
    partition = "0000 00000000 00000001 00000000 02 00000001 02 00000001 01 00"
    answer = (
        f"00000000 02 00000001 02 68 00002384 00 00 02 63 00000001 "
        f"02 0000 03 7474 {topic_id} 00 02 {partition} 80000000 00 80000000 00"
    )
    response = TopicIdsResponse.decode(BytesIO(bytes.fromhex(answer)))
    [(error, name, found, *_)] = response.topics
    assert (error, name, found) == (0, "tt", UUID(topic_id))
