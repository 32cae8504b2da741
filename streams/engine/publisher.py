"""Appends records to topics in batches over one producer, and gives it up at the first failure."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.partitioner import murmur2

from streams.engine.connection import Connection
from streams.engine.errors import AppendFailed, TooLarge
from streams.engine.partition import TP
from streams.engine.producing import (
    Appended,
    Headers,
    Record,
    build_batches,
    discard,
    send_in_order,
    size_in_request,
)

logger = logging.getLogger(__name__)


class Out(NamedTuple):
    """A record to publish.

    partition: where to; `partition_for` gives the usual one of a key.
    timestamp_ms: None for now.
    """

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


@lru_cache(maxsize=100_000)
def partition_for(key: bytes, count: int) -> int:
    """Return the partition Kafka's default partitioner gives a key among `count` partitions.

    Remembered: aiokafka's hash is slow, and a session's key comes again with every record.
    """
    return int((murmur2(key) & 0x7FFFFFFF) % count)


class Publisher:
    """One producer for all outputs of a worker.

    Appends to different partitions go out together; those of one call to one partition one
    after the other, each after the ack before it, so that nothing follows a failed append.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        idempotent: bool,
        max_record: int = 1_000_000,
        timeout_s: float = 30.0,
        compression: str | None = None,
    ) -> None:
        self._connection = connection
        self._idempotent = idempotent
        self._max_record = max_record
        self._timeout_s = timeout_s
        self._compression = compression
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Connect; publish does this by itself."""
        await self._ready()

    async def stop(self) -> None:
        """Close; what was published has its acks already."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await discard(producer)

    def fits(self, out: Out) -> bool:
        """Return whether the record can be sent at all."""
        if not out.headers and len(out.key or b"") + len(out.value or b"") < self._max_record // 2:
            return True  # without asking: this runs for every record
        return size_in_request(out.key, out.value, out.headers) <= self._max_record

    async def publish(self, outs: Sequence[Out]) -> list[Appended]:
        """Append all records, in order within each partition, and wait for all acks.

        Raises TooLarge before anything is sent; AppendFailed when an ack did not come: some
        of the records may be in their topics, and all have to be published again.
        """
        if not outs:
            return []
        targets: dict[TP, list[Record]] = defaultdict(list)
        for out in outs:
            if not self.fits(out):
                raise TooLarge(f"a record for {out.topic} is over {self._max_record} bytes")
            record = (out.key, out.value, out.timestamp_ms, out.headers)
            targets[TP(out.topic, out.partition)].append(record)
        try:
            producer = await self._ready()
        except (KafkaError, TimeoutError) as error:
            raise AppendFailed(f"no producer: {error!r}") from error
        return await self._send(producer, targets)

    async def _send(self, producer: AIOKafkaProducer, targets: dict[TP, list[Record]]) -> list[Appended]:
        sends = [
            asyncio.ensure_future(send_in_order(producer, tp, build_batches(producer, records)))
            for tp, records in targets.items()
        ]
        try:
            async with asyncio.timeout(self._timeout_s):
                acks = await asyncio.gather(*sends)
        except (KafkaError, TimeoutError, AssertionError) as error:
            await self._give_up(producer)
            raise AppendFailed(f"{len(targets)} partitions: {error!r}") from error
        except asyncio.CancelledError:
            await self._give_up(producer)
            raise
        finally:
            for send in sends:
                send.cancel()
            await asyncio.gather(*sends, return_exceptions=True)
        return [ack for partition in acks for ack in partition]

    async def _ready(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **self._connection.options(),
                    acks="all",
                    enable_idempotence=self._idempotent,
                    max_batch_size=512 * 1024,
                    max_request_size=self._max_record,
                    compression_type=self._compression,
                )
                try:
                    await asyncio.wait_for(producer.start(), self._timeout_s)
                except BaseException:
                    await discard(producer)
                    raise
                self._producer = producer
            return self._producer

    async def _give_up(self, producer: AIOKafkaProducer) -> None:
        """Close the producer for everyone who uses it; the next publish makes a new one."""
        if self._producer is producer:
            self._producer = None
            logger.warning("an append failed, the producer is replaced")
        await discard(producer)
