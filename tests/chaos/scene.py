"""One run's cluster, topics, input, workers and watch, put together."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams import admin
from streams.broker import ApacheKafka, apache_kafka
from streams.security import connection
from streams.topics import BREAKER_STATES, SESSION_STATES
from tests.chaos.agents import Agents
from tests.chaos.feed import Feed
from tests.chaos.fleet import Fleet
from tests.chaos.progress import Progress
from tests.pipeline.harness import Pipeline

STORES = ("memory", "rocksdb", "rocksdb", "memory")
"""The first three run from the start; the last one joins and leaves."""
RULES: dict[str, Any] = {
    # Every wait is shorter than a session's life, and that is shorter than a long stop.
    "session_ttl_s": 20.0,
    "turn_idle_s": 4.0,
    "score_wait_s": 1.0,
    "first_score_wait_s": 6.0,
    "unannounced_wait_s": 3.0,
    "circuit_breaker_window_s": 10.0,
    "capture_eval_cases": True,
    "max_open_turns": 8,
}
REQUESTS: dict[str, Any] = {"eval_deadline_s": 0.5, "eval_retry_backoff_s": 0.2, "eval_retry_attempts": 2}
"""Every other seed asks for scores; nobody answers, the agents' own scores come by chance."""
SESSION_TIMEOUT_S = 6.0
CHANGELOG = {
    "cleanup.policy": "compact",
    "segment.ms": "5000",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
}
"""Old segments are compacted while the run lasts, and tombstones leave soon after."""


@dataclass
class Scene:
    """What a fault acts upon. rng: the schedule's chance."""

    cluster: ApacheKafka
    pipeline: Pipeline
    feed: Feed
    fleet: Fleet
    progress: Progress
    rng: random.Random

    @property
    def ttl_s(self) -> float:
        return self.pipeline.settings.session_ttl_s


@contextmanager
def scene(seed: int, directory: Path, rate: float, *, compacts: bool = True, **overrides: Any) -> Iterator[Scene]:
    """A cluster of three with topics made and workers started; input has not begun.

    compacts: whether the changelogs are compacted while the run lasts, rather than after days.
    """
    directory.mkdir(parents=True)
    rng = random.Random(seed)
    with apache_kafka(directory / "kafka", brokers=3) as cluster:
        requests = {"request_evals": True, **REQUESTS} if seed % 2 else {}
        values = {
            **RULES,
            **requests,
            "replication_factor": 3,
            "session_timeout_s": SESSION_TIMEOUT_S,
            "max_record_bytes": 100_000,
            **overrides,
        }
        pipeline = Pipeline(cluster, "chaos", directory, **values)
        if compacts:
            asyncio.run(_create_changelogs(pipeline))
        asyncio.run(admin.create(connection(pipeline.settings), pipeline.settings))
        fleet = Fleet(pipeline, STORES)
        try:
            for place in fleet.places[:3]:
                fleet.start(place)
            feed = Feed(pipeline, Agents(random.Random(seed + 1)), random.Random(seed + 2), rate)
            yield Scene(cluster, pipeline, feed, fleet, Progress(pipeline), rng)
        finally:
            fleet.stop()


async def _create_changelogs(pipeline: Pipeline) -> None:
    settings = pipeline.settings
    counts = {SESSION_STATES: settings.log_partitions, BREAKER_STATES: settings.candidate_partitions}
    client = AIOKafkaAdminClient(bootstrap_servers=pipeline.broker.bootstrap)
    await client.start()
    try:
        topics = [
            NewTopic(pipeline.topics[role].name, count, settings.replication_factor, topic_configs=CHANGELOG)
            for role, count in counts.items()
        ]
        answer = await client.create_topics(topics)
    finally:
        await client.close()
    assert all(code == 0 for _, code, *_ in answer.topic_errors), answer
