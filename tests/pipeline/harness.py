"""A whole pipeline for a test: topics of its own, worker processes, input lines, and the topics read back."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

from streams import admin
from streams.broker import RunningBroker
from streams.engine import Offsets
from streams.security import connection
from streams.settings import PREFIX, Settings, load
from streams.topics import BY_ROLE, EVAL_SCORES, TRACE_INGESTED, named

PATIENCE_S = 120.0
"""How long anything may take before a test gives up; nothing is asserted about how long it does take."""


class Pipeline:
    """Topics of one test on a shared broker, and the workers that serve them."""

    def __init__(self, broker: RunningBroker, name: str, directory: Path, **overrides: Any) -> None:
        self.broker = broker
        self.directory = directory
        self.overrides = {
            "bootstrap_servers": broker.bootstrap,
            "app_id": name,
            "topic_names": {role: f"{name}-{role}" for role in BY_ROLE},
            "session_timeout_s": 6.0,
            "input_partitions": 3,
            "log_partitions": 4,
            "candidate_partitions": 2,
            "output_partitions": 2,
            "state_dir": str(directory),
            **overrides,
        }
        self.settings: Settings = load(overrides=self.overrides, environ={}).settings
        self.topics = named(self.settings.topic_names)
        self.workers: list[subprocess.Popen[bytes]] = []

    def create_topics(self) -> None:
        answers = asyncio.run(admin.create(connection(self.settings), self.settings))
        assert set(answers.values()) == {"created"}

    def start_worker(
        self, module: str = "streams", arguments: Sequence[str] = ("worker",), **overrides: Any
    ) -> subprocess.Popen[bytes]:
        """Start a worker process and return it; its log stands in the test's directory."""
        values = {**self.overrides, **overrides}
        environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        environ |= {PREFIX + name.upper(): _text(value) for name, value in values.items()}
        with (self.directory / f"worker-{len(self.workers)}.log").open("wb") as log:
            command = [sys.executable, "-m", module, *arguments]
            worker = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
        self.workers.append(worker)
        return worker

    def stop_worker(self, worker: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> int:
        worker.send_signal(how)
        return worker.wait(PATIENCE_S)

    def stop(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()

    def publish(self, lines: Iterable[dict[str, Any] | tuple[str, bytes, bytes | None]]) -> None:
        """Publish traces and scores as JSON, each line after the one before it; or (role, value, key) as it is."""
        asyncio.run(self._publish(list(lines)))

    async def _publish(self, lines: list[Any]) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self.broker.bootstrap)
        await producer.start()
        try:
            acks = []
            for line in lines:
                role, value, key = line if isinstance(line, tuple) else _record(line)
                acks.append(await producer.send(self.topics[role].name, value, key=key))
            await asyncio.gather(*acks)
        finally:
            await producer.stop()

    def read(self, role: str) -> list[ConsumerRecord]:
        """Return every record of a topic, partition by partition."""
        return asyncio.run(self._read(role))

    async def _read(self, role: str) -> list[ConsumerRecord]:
        name = self.topics[role].name
        reach = connection(self.settings)
        offsets = Offsets(reach, lists_ends=self.broker.fences)
        found = await admin.find(reach, self.settings)
        tps = [TopicPartition(name, number) for number in range(found[role].partitions or 0)]
        ends = await offsets.end_offsets(tps)
        await offsets.stop()
        consumer = AIOKafkaConsumer(**reach.options(), isolation_level="read_committed", auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign(tps)
        records: dict[TopicPartition, list[ConsumerRecord]] = defaultdict(list)
        deadline = time.monotonic() + PATIENCE_S
        try:
            while any([await consumer.position(tp) < ends[tp] for tp in tps]):
                assert time.monotonic() < deadline, f"{name} does not end at {ends}"
                for tp, batch in (await consumer.getmany(timeout_ms=200)).items():
                    records[tp].extend(batch)
        finally:
            await consumer.stop()
        return [record for tp in tps for record in records[tp]]

    def values(self, role: str) -> list[Any]:
        """Return a topic's JSON values."""
        return [json.loads(record.value) for record in self.read(role)]

    def wait_until(self, met: Callable[[], bool], what: str) -> None:
        """Look again and again; a worker that ended early is a failure of its own."""
        deadline = time.monotonic() + PATIENCE_S
        while not met():
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE_S} s, see {self.directory}"
            time.sleep(0.3)

    def wait_settled(self, count: int) -> None:
        """Wait until so many turns have settled."""
        self.wait_until(
            lambda: len({item["settled_id"] for item in self.values("turn-settled")}) >= count, "settlement"
        )


@contextmanager
def pipeline(broker: RunningBroker, name: str, directory: Path, **overrides: Any) -> Iterator[Pipeline]:
    """A pipeline with its topics, without workers yet."""
    made = Pipeline(broker, name, directory, **overrides)
    made.create_topics()
    try:
        yield made
    finally:
        made.stop()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _record(line: dict[str, Any]) -> tuple[str, bytes, bytes]:
    role = EVAL_SCORES if "score_id" in line else TRACE_INGESTED
    return role, json.dumps(line).encode(), line["session_id"].encode()
