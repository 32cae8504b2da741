"""Puts records into the input topics: all at once as a backlog, or at a pace."""

import time
from collections.abc import Iterable

from confluent_kafka import Message, Producer

from benchmarks.pipeline.contenders.task import INPUTS
from benchmarks.pipeline.records import Made


class Loader:
    """A producer for the input topics; the harness's own, the same for every contender."""

    def __init__(
        self, bootstrap: str, *, idempotent: bool, topics: tuple[str, str] = INPUTS, linger_ms: float = 20.0
    ) -> None:
        """Produce to *topics*: that of traces, then that of scores."""
        self._traces, self._scores = topics
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                "partitioner": "murmur2_random",
                "linger.ms": linger_ms,
                "queue.buffering.max.messages": 200_000,
                "queue.buffering.max.kbytes": 256 * 1024,
            }
        )
        self._failures = 0

    def send(self, record: Made, timestamp_ms: int) -> None:
        """Hand a record over; waits while too much is under way."""
        topic = self._traces if record.is_trace else self._scores
        while True:
            try:
                self._producer.produce(
                    topic, record.value, record.key, on_delivery=self._acknowledged, timestamp=timestamp_ms
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def serve(self, wait_s: float = 0.0) -> None:
        """Take acks."""
        self._producer.poll(wait_s)

    def finish(self) -> None:
        """Wait for all acks.

        Raises:
            RuntimeError: the broker did not take every record.
        """
        left = self._producer.flush(120)
        if left or self._failures:
            raise RuntimeError(f"the broker refused {self._failures} records and left {left} unanswered")

    def _acknowledged(self, error: object, _: Message) -> None:
        self._failures += error is not None


def load(loader: Loader, records: Iterable[Made], rate: float) -> int:
    """Load a backlog as if it had been written at *rate* records a second until now; returns how many."""
    known = list(records)
    start = time.time() - len(known) / rate
    for number, record in enumerate(known):
        loader.send(record, round((start + number / rate) * 1000))
        if number % 1000 == 0:
            loader.serve()
    loader.finish()
    return len(known)
