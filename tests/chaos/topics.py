"""What faults do to topics, through the brokers' own administration."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import KafkaError
from faust.types import TP

from streams import admin
from streams.engine import Offsets
from streams.security import connection
from streams.topics import EVAL_SCORES, SESSION_STATES, TRACE_INGESTED
from tests.pipeline.harness import Pipeline

INPUTS: Final = (TRACE_INGESTED, EVAL_SCORES)
T = TypeVar("T")


def recreate(pipeline: Pipeline, role: str) -> None:
    """Delete a topic and make it again under the same name."""
    name = pipeline.topics[role].name

    async def delete(client: AIOKafkaAdminClient) -> None:
        answer = await client.delete_topics([name])
        assert all(code == 0 for _, code, *_ in answer.topic_error_codes), answer

    asyncio.run(_ask(pipeline, delete))
    deadline = time.monotonic() + 60
    while True:
        answers = asyncio.run(admin.create(connection(pipeline.settings), pipeline.settings))
        if answers[name] == "created":
            return
        # A topic that is being deleted still counts as one that exists.
        assert time.monotonic() < deadline, answers
        time.sleep(0.2)


def delete_records(pipeline: Pipeline, role: str, rng: random.Random) -> str:
    """Delete the oldest of a partition's records that the group has not read; returns which."""
    settings = pipeline.settings
    tps = [TP(pipeline.topics[role].name, number) for number in range(settings.input_partitions)]

    async def find() -> tuple[TP, int, int]:
        offsets = Offsets(connection(settings), lists_ends=True)
        try:
            ends = await offsets.end_offsets(tps)
            committed = await offsets.committed(settings.app_id, tps)
        finally:
            await offsets.stop()
        tp = max(tps, key=lambda tp: ends[tp] - (committed[tp] or 0))
        return tp, committed[tp] or 0, ends[tp]

    tp, start, end = asyncio.run(find())
    stop = rng.randint(min(start + 1, end), end)

    async def delete(client: AIOKafkaAdminClient) -> None:
        await client.delete_records({TopicPartition(*tp): RecordsToDelete(stop)})

    asyncio.run(_ask(pipeline, delete))
    return f"{tp.topic}-{tp.partition}, offsets {start} to {stop - 1}"


def wait_for_compaction(pipeline: Pipeline, patience_s: float) -> str:
    """Wait until records of the session table's changelog that are there now have been compacted away."""
    before = [(record.partition, record.offset) for record in pipeline.read(SESSION_STATES)]
    started = time.monotonic()
    while time.monotonic() - started < patience_s:
        time.sleep(2)
        now = {(record.partition, record.offset) for record in pipeline.read(SESSION_STATES)}
        gone = sum(place not in now for place in before)
        newest_gone = sum(place not in now for place in before[-len(before) // 10 :])
        if gone > len(before) // 2 and newest_gone:
            return f"{gone} of {len(before)} records compacted"
    return "not compacted in time"


async def _ask(pipeline: Pipeline, question: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
    deadline = time.monotonic() + 60
    while True:
        client = AIOKafkaAdminClient(bootstrap_servers=pipeline.broker.bootstrap)
        try:
            await client.start()
            return await question(client)
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.5)
        finally:
            await client.close()
