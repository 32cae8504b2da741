"""Writes a table partition's changelog so that only the newest owner can, and reads it back."""

# ruff: noqa: SLF001  (aiokafka and Faust have no public way to do this; both are pinned)

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import (
    IllegalOperation,
    InvalidProducerEpoch,
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    ProducerFenced,
)

from streams.engine.closing import close_consumer
from streams.engine.connection import Connection
from streams.engine.errors import ChangelogFailed, Fenced
from streams.engine.partition import TP
from streams.engine.producing import Appended, Record, build_batches, discard, send_in_order
from streams.engine.stores import Changes, Mark, Store, digest

logger = logging.getLogger(__name__)

_POLL_MS = 100
_MAX_BATCH = 512 * 1024
_GIVE_UP_S = 5.0


class ChangelogWriter:
    """Appends to one changelog partition.

    Where the broker fences, each append is one transaction under an id that belongs to the
    table partition; opening a writer makes the broker refuse every older one.
    """

    def __init__(
        self,
        connection: Connection,
        tp: TP,
        *,
        transactional_id: str | None,
        timeout_s: float = 30.0,
    ) -> None:
        self.tp = tp
        self._timeout_s = timeout_s
        self.fences = transactional_id is not None
        self._producer = AIOKafkaProducer(
            **connection.options(),
            acks="all",
            transactional_id=transactional_id,
            max_batch_size=_MAX_BATCH,
        )

    async def open(self) -> None:
        """Connect; where the broker fences, older writers of the partition end here."""
        try:
            await asyncio.wait_for(self._producer.start(), self._timeout_s)
        except BaseException:
            await discard(self._producer)
            raise

    async def append(self, changes: Changes) -> Mark:
        """Write all changes in their order and wait for the acks.

        Raises Fenced when a newer writer exists, ChangelogFailed when the outcome is unknown;
        the writer is of no use after either.
        """
        records: list[Record] = [(key, value, None, ()) for key, value in changes.items()]
        try:
            async with asyncio.timeout(self._timeout_s):
                sent = await self._append(records)
        except (ProducerFenced, InvalidProducerEpoch) as error:
            raise Fenced(f"{self.tp.topic}-{self.tp.partition} has a newer owner") from error
        except (KafkaError, IllegalOperation, TimeoutError) as error:
            raise ChangelogFailed(f"{self.tp.topic}-{self.tp.partition}: {error!r}") from error
        key, value, *_ = records[-1]
        return Mark(sent[-1].base_offset + sent[-1].count - 1, digest(key, value))

    async def _append(self, records: list[Record]) -> list[Appended]:
        if self.fences:
            await self._producer.begin_transaction()
        batches = build_batches(self._producer, records)
        sent = await send_in_order(self._producer, self.tp, batches)
        if self.fences:
            await self._producer.commit_transaction()
        return sent

    async def close(self) -> None:
        """Close without waiting for anything that is not acknowledged."""
        await discard(self._producer)


async def restore(connection: Connection, tp: TP, store: Store) -> int:
    """Bring a store to the end of its changelog; return how many records were read.

    Only what the store has not applied is read. A store that is ahead of its changelog, or
    whose last record is not in it (the topic was made again, or was compacted past it), is
    wiped and built from the start.
    """
    consumer = AIOKafkaConsumer(
        **connection.options(),
        isolation_level="read_committed",
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=_POLL_MS,
        max_partition_fetch_bytes=4 * 1024 * 1024,
    )
    await consumer.start()
    try:
        key = TP(tp.topic, tp.partition)
        consumer.assign([key])
        start = await _first_offset(consumer, key)
        count = await _apply_tail(consumer, key, store) if store.mark else None
        if count is None:
            store.wipe()
            count = await _read_to_end(consumer, key, start, store)
        return count
    finally:
        await close_consumer(consumer, _GIVE_UP_S)


async def _first_offset(consumer: Any, key: TP) -> int:
    try:
        return int((await consumer.beginning_offsets([key]))[key])
    except KafkaTimeoutError as error:
        raise ChangelogFailed(
            f"{key.topic}-{key.partition} has no leader; "
            "does the topic exist, with as many partitions as the topic it belongs to?"
        ) from error


async def _apply_tail(consumer: Any, key: TP, store: Store) -> int | None:
    """Apply what follows the store's mark; None when the mark is not in the changelog."""
    mark = store.mark
    if mark is None:
        return None
    try:
        return await _read_to_end(consumer, key, mark.offset, store, expected=mark)
    except (_NotTheSame, OffsetOutOfRangeError):
        logger.warning("%s: the local store does not belong to this changelog, rebuilding", key)
        return None


class _NotTheSame(Exception):
    """The changelog does not hold the record the store says it applied last."""


async def _read_to_end(consumer: Any, key: TP, start: int, store: Store, expected: Mark | None = None) -> int:
    """Apply records from an offset on until the broker has no more; return how many.

    The end is the consumer's position against what the broker says in its answers to fetches:
    ListOffsets is wrong on Tansu, and the last record is not at the end where markers follow it.
    """
    consumer.seek(key, start)
    count = 0
    while True:
        records = (await consumer.getmany(key, timeout_ms=_POLL_MS)).get(key, [])
        if expected is not None and records:
            if (records[0].offset, digest(records[0].key, records[0].value)) != (
                expected.offset,
                expected.digest,
            ):
                raise _NotTheSame
            expected, records = None, records[1:]
        if records:
            count += len(records)
            last = records[-1]
            changes = {record.key: record.value for record in records}
            store.apply(changes, Mark(last.offset, digest(last.key, last.value)))
        if _is_at_end(consumer, key):
            if expected is not None:
                raise _NotTheSame
            return count


def _is_at_end(consumer: Any, key: TP) -> bool:
    state = consumer._subscription.subscription.assignment.state_value(key)
    end = state.highwater if state.lso is None or state.lso < 0 else state.lso
    return end is not None and state.has_valid_position and state.position >= end


def transactional_ids(app_id: str, table: str, partitions: int) -> Iterator[str]:
    """Name the transactional ids of a table, for access lists."""
    return (transactional_id(app_id, table, partition) for partition in range(partitions))


def transactional_id(app_id: str, table: str, partition: int) -> str:
    """Return the id all owners of a table partition share, one after the other."""
    return f"{app_id}-{table}-{partition}"
