"""Apache Kafka from its artifacts: one broker that keeps its data, three that survive a crash."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.broker import ApacheKafka, apache_kafka
from streams.errors import BrokerUnavailable

pytestmark = pytest.mark.kafka

SCORES = TopicPartition("scores", 0)


async def _create(broker: ApacheKafka) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(SCORES.topic, num_partitions=1, replication_factor=broker.brokers)])
    finally:
        await admin.close()


async def _produce(bootstrap: str, *values: bytes) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, request_timeout_ms=60_000
    )
    async with producer:
        for value in values:
            await producer.send_and_wait(SCORES.topic, value, partition=SCORES.partition)


async def _consume(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    async with consumer:
        consumer.assign([SCORES])
        async with asyncio.timeout(60):
            return [(await consumer.getone()).value for _ in range(count)]


def _gone(pid: int) -> bool:
    """Whether the process is no more; one that only waits to be buried counts as gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_one_broker_keeps_its_data(tmp_path: Path) -> None:
    with apache_kafka(tmp_path) as broker:
        asyncio.run(_create(broker))
        asyncio.run(_produce(broker.bootstrap, b"before"))
        assert broker.describe() == f"{broker.name} on {broker.bootstrap}: data in {tmp_path}"
        assert broker.name.startswith("Apache Kafka 4.")
        assert (broker.forgets, broker.fences, broker.compacts) == (False, True, True)
    assert _gone(broker.pid())
    with apache_kafka(tmp_path) as again:
        assert again.bootstrap == broker.bootstrap
        asyncio.run(_produce(again.bootstrap, b"after"))
        assert asyncio.run(_consume(again.bootstrap, 2)) == [b"before", b"after"]


def test_a_crash_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with apache_kafka(tmp_path) as broker:
        asyncio.run(_create(broker))
        asyncio.run(_produce(broker.bootstrap, b"before"))
        crashed = broker.pid()
        broker.kill()
        assert _gone(crashed)
        broker.start()
        asyncio.run(_produce(broker.bootstrap, b"after"))
        assert asyncio.run(_consume(broker.bootstrap, 2)) == [b"before", b"after"]


def test_a_second_owner_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    with apache_kafka(tmp_path) as broker:
        asyncio.run(_create(broker))
        with pytest.raises(BrokerUnavailable, match=f"run already: connect to {broker.bootstrap}"):
            apache_kafka(tmp_path).__enter__()
        asyncio.run(_produce(broker.bootstrap, b"still here"))


def test_a_lost_race_for_a_port_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with apache_kafka(tmp_path / "first") as first:
        taken = int(first.bootstrap.partition(":")[2])

        def ports(_preferred: int | None, *, adjacent: int) -> Iterator[int]:
            return iter([taken, taken + adjacent + 10])

        monkeypatch.setattr("streams.broker.kafka.ports_to_try", ports)
        with apache_kafka(tmp_path / "second") as second:
            assert second.bootstrap == f"127.0.0.1:{taken + 12}"


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with apache_kafka(tmp_path / "first") as first:
        taken = int(first.bootstrap.partition(":")[2])
        with pytest.raises(BrokerUnavailable, match="a port of broker 1 is taken"):
            apache_kafka(tmp_path / "second", port=taken).__enter__()


def test_no_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(BrokerUnavailable, match=r"no java at .*nowhere.*\n.*Install Java 17"):
        apache_kafka(tmp_path / "data").__enter__()


def test_an_installed_package_says_where_the_scripts_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.broker.kafka._SCRIPT", tmp_path / "kafka.sh")
    with pytest.raises(BrokerUnavailable, match="clone the project"):
        apache_kafka(tmp_path).__enter__()


def test_three_brokers_go_on_without_one(tmp_path: Path) -> None:
    with apache_kafka(tmp_path, brokers=3) as cluster:
        asyncio.run(_create(cluster))
        asyncio.run(_produce(cluster.bootstrap, b"three"))
        crashed = cluster.pid(2)
        cluster.kill(2)
        assert _gone(crashed)
        assert not _gone(cluster.pid(1))
        assert not _gone(cluster.pid(3))
        asyncio.run(_produce(cluster.bootstrap, b"two"))
        assert asyncio.run(_consume(cluster.bootstrap, 2)) == [b"three", b"two"]
        cluster.start(2)
        assert not _gone(cluster.pid(2))
        # What the others took in its absence, it now serves by itself too.
        asyncio.run(_produce(cluster.bootstrap, b"three again"))
        alone = cluster.bootstrap.split(",")[1]
        assert asyncio.run(_consume(alone, 3)) == [b"three", b"two", b"three again"]
    assert all(_gone(cluster.pid(each)) for each in (1, 2, 3))
