"""The session stage of one partition without a broker: what reading, folding, writing and remembering cost."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from aiokafka import ConsumerRecord, TopicPartition

from streams import tables
from streams.agents.metering import Meter
from streams.agents.outbox import Outbox
from streams.agents.session import SessionStage
from streams.core.log import LogRecord, Source
from streams.core.model import Score, Trace
from streams.core.rules import Rules
from streams.engine import Batch, Out, PartitionState, Publisher, Reading, Recovery
from streams.engine.lanes import Lane
from streams.metrics import Metrics
from streams.settings import Settings
from streams.topics import BY_ROLE, SESSION_LOG
from streams.wire import Wire

RULES = Rules(tier2_metrics=())
TP = TopicPartition(SESSION_LOG, 0)
PARTITIONS = 8


@dataclass
class Cost:
    """What some records cost.

    cpu_s: processor time. changelog_bytes, output_bytes: keys and values written.
    """

    records: int = 0
    cpu_s: float = 0.0
    changelog_bytes: int = 0
    output_bytes: int = 0

    @property
    def us_per_record(self) -> float:
        """Microseconds of processor time."""
        return self.cpu_s / self.records * 1e6


class Kept:
    """A partition's state in memory, which counts what is written to it."""

    partition = 0
    recovery = Recovery(0, 0.0)
    ended = None

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.written = 0

    def get(self, key: bytes) -> bytes | None:
        return self.values.get(key)

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return (item for item in list(self.values.items()) if item[0].startswith(prefix))

    async def commit(self, changes: Mapping[bytes, bytes | None]) -> None:
        for key, value in changes.items():
            self.written += len(key) + len(value or b"")
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value


class Counting:
    """A publisher that counts bytes and sends nothing."""

    def __init__(self) -> None:
        self.written = 0

    async def publish(self, outs: Sequence[Out]) -> list[Any]:
        self.written += sum(len(out.key or b"") + len(out.value or b"") for out in outs)
        return []


class Partition:
    """One partition of the session log, folded as a worker folds it."""

    def __init__(self) -> None:
        self.kept = Kept()
        self.offset = 0
        self._outputs = Counting()
        self._wire = Wire("json", max_bytes=Settings().max_record_bytes)
        publisher = cast("Publisher", self._outputs)
        outbox = Outbox(self._wire, BY_ROLE, dict.fromkeys(BY_ROLE, PARTITIONS))
        self._stage = SessionStage(publisher, outbox, self._wire, SESSION_LOG, Meter("session", Metrics()))
        self._lane = Lane(TP, Reading(contiguous=True), 0, cast("PartitionState", self.kept))

    async def restore(self) -> float:
        """Take up what is kept; returns the seconds of processor time that took."""
        began = time.process_time()
        await self._stage.on_restored(0, cast("PartitionState", self.kept))
        return time.process_time() - began

    def record(self, session_id: str | None, body: Trace | Score | Rules, time_ms: int) -> ConsumerRecord[Any, Any]:
        """Return the next record of the log as the client hands it over."""
        source = None if isinstance(body, Rules) else Source("eval-scores", "an-id", 0, self.offset)
        value = self._wire.write_internal(LogRecord(self.offset, time_ms, body, session_id, source))
        record: ConsumerRecord[Any, Any] = ConsumerRecord(
            TP.topic, 0, self.offset, time_ms, 1, (session_id or "").encode(), value, None, 0, len(value), ()
        )
        self.offset += 1
        return record

    async def handle(self, records: Sequence[ConsumerRecord[Any, Any]], cost: Cost) -> None:
        """Fold a batch and add what it cost."""
        changelog, outputs = self.kept.written, self._outputs.written
        began = time.process_time()
        await self._stage.handle(Batch(self._lane, records, records[-1].offset + 1))
        cost.cpu_s += time.process_time() - began
        cost.records += len(records)
        cost.changelog_bytes += self.kept.written - changelog
        cost.output_bytes += self._outputs.written - outputs

    def state_bytes(self) -> tuple[int, int]:
        """Return how many sessions are kept, and how many bytes their keys and values take."""
        sizes = [len(key) + len(value) for key, value in self.kept.items(tables.STATE_PREFIX)]
        return len(sizes), sum(sizes)
