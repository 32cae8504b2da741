"""Input topics that are given more partitions while a worker runs."""

import asyncio
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from streams.broker import RunningBroker
from tests.pipeline.harness import Pipeline, pipeline
from tests.pipeline.test_notices import story

SESSIONS = [f"s{number}" for number in range(8)]


async def grow(running: Pipeline, count: int) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=running.broker.bootstrap)
    await client.start()
    names = [running.topics[role].name for role in ("trace-ingested", "eval-scores")]
    answer = await client.create_partitions({name: NewPartitions(total_count=count) for name in names})
    await client.close()
    assert [code for _, code, *_ in answer.topic_errors] == [0, 0]


@pytest.mark.kafka  # the embedded broker adds no partitions
def test_new_partitions_are_read_without_a_restart(broker: RunningBroker, tmp_path: Path) -> None:
    told = {"input_partitions": 1, "tier1_metrics": "task_completion", "circuit_breaker_max_notices": 0}
    with pipeline(broker, "growing", tmp_path, **told) as running:
        running.start_worker()
        running.publish(story("before", 0.6, 0.2))
        running.wait_settled(2)
        asyncio.run(grow(running, 4))
        running.publish([line for session in SESSIONS for line in story(session, 0.6, 0.2)])
        running.wait_settled(2 + 2 * len(SESSIONS))
        used = {record.partition for record in running.read("eval-scores")}
        assert len(used) > 1
        assert {notice["session_id"] for notice in running.values("notices")} == {"before", *SESSIONS}
