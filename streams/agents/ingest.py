"""Ingest: reads traces and scores, validates, re-keys, and appends them to the session log in the order they came."""

import asyncio
from collections.abc import Mapping

import structlog
from aiokafka import ConsumerRecord
from faust.types import TP

from streams.agents.metering import Meter
from streams.agents.outbox import Outbox
from streams.core.log import LogRecord, Source
from streams.core.model import Score, Trace
from streams.engine import Batch, Offsets, Out, Publisher, partition_for
from streams.errors import InvalidRecord
from streams.topics import SESSION_LOG, TRACE_INGESTED, TRACES, Topic
from streams.wire import Wire

log = structlog.get_logger(__name__)

RULES_LOOK_S = 0.2


class Ingest:
    """The first stage. It keeps no state: its committed offsets say where it stands."""

    def __init__(
        self,
        publisher: Publisher,
        outbox: Outbox,
        wire: Wire,
        offsets: Offsets,
        topics: Mapping[str, Topic],
        partitions: int,
        meter: Meter,
    ) -> None:
        self._publisher = publisher
        self._outbox = outbox
        self._wire = wire
        self._offsets = offsets
        self._trace_topic = topics[TRACE_INGESTED].name
        self._log_topic = topics[SESSION_LOG].name
        self._partitions = partitions
        self._meter = meter
        self._ready: set[int] = set()

    async def handle(self, batch: Batch) -> None:
        """Append a batch; whole traces are acknowledged before the log mentions them."""
        whole: list[Out] = []
        appended: list[Out] = []
        tally = self._meter.tally()

        def read(record: ConsumerRecord) -> None:
            try:
                self._read(record, batch.topic_id, whole, appended)
            except InvalidRecord as error:
                whole.append(self._outbox.dead_letter(record, error))
                tally.dead_letter(error)

        async def keep() -> None:
            await batch.each(read)
            await self._publisher.publish(whole)

        await asyncio.gather(batch.check_topic(), keep())
        for partition in {out.partition for out in appended} - self._ready:
            await self._wait_for_rules(partition)
        await self._publisher.publish(appended)
        batch.done()
        tally.count()

    def _read(self, record: ConsumerRecord, topic_id: str, whole: list[Out], appended: list[Out]) -> None:
        if record.topic == self._trace_topic:
            trace = self._wire.read_trace(record.value, record.key, record.timestamp)
            key, partition = self._place(trace.session_id)
            # As it came: the key names the session where the trace does not, and readers know every format.
            value = self._wire.bounded(record.value, "Trace")
            whole.append(self._outbox.to(TRACES, key, value, partition=partition))
            appended.append(self._log_record(record, topic_id, trace.session_id, trace.trace))
        else:
            score = self._wire.read_score(record.value, record.key, record.timestamp)
            appended.append(self._log_record(record, topic_id, score.session_id, score.score))

    def _log_record(self, record: ConsumerRecord, topic_id: str, session_id: str, body: Trace | Score) -> Out:
        source = Source(record.topic, topic_id, record.partition, record.offset)
        value = self._wire.write_internal(LogRecord(record.offset, record.timestamp, body, session_id, source))
        key, partition = self._place(session_id)
        return self._outbox.to(SESSION_LOG, key, value, partition=partition)

    def _place(self, session_id: str) -> tuple[bytes, int]:
        key = session_id.encode("utf-8", "surrogatepass")
        return key, partition_for(key, self._partitions)

    async def _wait_for_rules(self, partition: int) -> None:
        """Wait until the partition's owner has appended its rules: the first record of every partition."""
        tp = TP(self._log_topic, partition)
        waited = 0
        while (await self._offsets.end_offsets([tp]))[tp] == 0:
            await asyncio.sleep(RULES_LOOK_S)
            waited += 1
            if waited % round(10 / RULES_LOOK_S) == 0:
                log.warning("waiting_for_rules", partition=partition, hint="no worker owns this log partition yet")
        self._ready.add(partition)
