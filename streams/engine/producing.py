"""What both producers share: building batches, sending them in order, giving a producer up."""

# ruff: noqa: SLF001  (aiokafka and Faust have no public way to do this; both are pinned)

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerClosed
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from streams.engine.partition import TP

logger = logging.getLogger(__name__)

Headers = Sequence[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, int | None, Headers]

_GIVE_UP_S = 5.0


@dataclass(frozen=True, slots=True)
class Appended:
    """One acknowledged request's records of one partition.

    base_offset: offset of the first. count: how many.
    timestamp_ms: the broker's append time, where the topic has LogAppendTime; else None.
    """

    tp: TP
    base_offset: int
    count: int
    timestamp_ms: int | None


def size_in_request(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """Return the most bytes a record takes in a request of its own."""
    size: int = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, list(headers))
    return size


def build_batches(producer: AIOKafkaProducer, records: Iterable[Record]) -> list[Any]:
    """Pack records into as few of aiokafka's batches as their size limit allows."""
    batches: list[Any] = []
    batch = None
    for key, value, timestamp_ms, headers in records:
        fields = {"timestamp": timestamp_ms, "key": key, "value": value, "headers": list(headers)}
        if batch is None or batch.append(**fields) is None:
            batch = producer.create_batch()
            batches.append(batch)
            batch.append(**fields)
    return batches


async def send_in_order(producer: AIOKafkaProducer, tp: TP, batches: list[Any]) -> list[Appended]:
    """Send batches to one partition, each after the ack of the one before it."""
    acks = []
    for batch in batches:
        batch.close()
        count = batch.record_count()
        ack = await (await producer.send_batch(batch, tp.topic, partition=tp.partition))
        timestamp = None if ack.timestamp in (None, -1) else int(ack.timestamp)
        acks.append(Appended(tp, ack.offset, count, timestamp))
    return acks


async def discard(producer: AIOKafkaProducer) -> None:
    """Close a producer so that nothing it still holds is sent.

    Its own stop() waits for what is pending, for ever when the broker is away.
    """
    if producer._closed:
        return
    producer._closed = True
    _fail_pending(producer)
    with contextlib.suppress(Exception):
        await producer.client.close()
    try:
        await asyncio.wait_for(producer._sender.close(), _GIVE_UP_S)
    except Exception as error:  # noqa: BLE001  (it is being thrown away)
        logger.debug("a discarded producer ended with %r", error)
    with contextlib.suppress(Exception):
        # Its sender may have connected again while it was being stopped.
        await producer.client.close()


def _fail_pending(producer: AIOKafkaProducer) -> None:
    """Fail what was not sent, and mark the failures as seen: their senders were told already."""
    accumulator = producer._message_accumulator
    batches = [batch for queue in accumulator._batches.values() for batch in queue]
    futures = [future for batch in batches for future in (batch.future, batch._drain_waiter)]
    transaction = producer._txn_manager and producer._txn_manager._transaction_waiter
    if transaction is not None:
        futures.append(transaction)
        if not transaction.done():
            transaction.set_exception(ProducerClosed())
    accumulator.fail_all(ProducerClosed())
    for future in futures:
        if future.done() and not future.cancelled():
            future.exception()
