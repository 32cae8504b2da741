"""Publishes what the agents tell, steadily, from a thread of its own, and remembers where each record stands."""

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from streams.engine import partition_for
from tests.chaos.agents import Agents, Line
from tests.pipeline.harness import Pipeline

POLL_S = 0.1


@dataclass
class Published:
    """Where every record stands: (role, generation of the topic, partition, offset) -> the line."""

    acked: dict[tuple[str, int, int, int], Line] = field(default_factory=dict)
    unknown: dict[int, Line] = field(default_factory=dict)
    """Sent without an ack; they may stand in the topic or not."""
    generations: dict[str, int] = field(default_factory=dict)
    """Role -> how often its topic was made again."""


class Feed:
    """About `rate` records a second until stopped; pause and resume hold it in between."""

    def __init__(self, pipeline: Pipeline, agents: Agents, rng: random.Random, rate: float) -> None:
        self._pipeline = pipeline
        self._agents = agents
        self._rng = rng
        self.rate = rate
        self.published = Published()
        self._wanted = threading.Event()
        self._resting = threading.Event()
        self._ended = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        self._wanted.set()
        self._thread.start()

    def pause(self) -> None:
        """Stop publishing, and return when every record has its ack or has none for good."""
        self._wanted.clear()
        while not self._resting.wait(1.0):
            self._check()

    def resume(self) -> None:
        self._check()
        self._resting.clear()
        self._wanted.set()

    def stop(self) -> None:
        self.pause()
        self._ended = True
        self._wanted.set()
        self._thread.join()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ended:
                self._wanted.wait()
                if not self._ended:
                    asyncio.run(self._publish())
                self._resting.set()
        except BaseException as error:  # it belongs to whoever waits for us
            self._failure = error
            raise

    async def _publish(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._pipeline.broker.bootstrap,
            enable_idempotence=True,
            linger_ms=5,
            request_timeout_ms=30_000,
        )
        await producer.start()
        acks: set[asyncio.Future[object]] = set()
        budget, looked = 0.0, time.monotonic()
        try:
            while self._wanted.is_set():
                now = time.monotonic()
                # What could not be published while a broker was away is not caught up on in one burst.
                budget, looked = min(budget + (now - looked) * self.rate, self.rate), now
                while budget > 0 and self._wanted.is_set():
                    lines = self._agents.turn()
                    await self._send(producer, lines, acks)
                    budget -= max(len(lines), 0.2)
                await asyncio.sleep(POLL_S)
            await asyncio.gather(*acks, return_exceptions=True)
        finally:
            with contextlib.suppress(KafkaError):
                await producer.stop()

    async def _send(
        self, producer: AIOKafkaProducer, lines: Iterable[Line], acks: set["asyncio.Future[object]"]
    ) -> None:
        for line in lines:
            topic = self._pipeline.topics[line.role].name
            count = self._pipeline.settings.input_partitions
            partition = self._rng.randrange(count) if line.anywhere else partition_for(line.key or b"", count)
            self.published.unknown[line.number] = line
            try:
                ack = await producer.send(topic, line.value, key=line.key, partition=partition)
            except KafkaError:
                continue
            acks.add(ack)
            ack.add_done_callback(acks.discard)
            ack.add_done_callback(lambda done, line=line: self._note(line, done))

    def _note(self, line: Line, done: "asyncio.Future[object]") -> None:
        if done.cancelled() or done.exception() is not None:
            return
        place = done.result()
        generation = self.published.generations.get(line.role, 0)
        self.published.acked[line.role, generation, place.partition, place.offset] = line  # type: ignore[attr-defined]
        self.published.unknown.pop(line.number, None)
