"""Journals every stretch of offsets that was wanted and cannot be read any more."""

import asyncio
import time

import structlog

from streams.agents.outbox import Outbox
from streams.core.ids import digest
from streams.core.model import JournalEntry, JournalKind
from streams.engine import AppendFailed, Gap, Publisher
from streams.metrics import Metrics

log = structlog.get_logger(__name__)

RETRY_S = 1.0


class GapJournal:
    """Takes gaps from the consumer's thread and publishes them from the loop, until each has its ack."""

    def __init__(self, publisher: Publisher, outbox: Outbox, metrics: Metrics) -> None:
        self._publisher = publisher
        self._outbox = outbox
        self._metrics = metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gaps: asyncio.Queue[Gap] = asyncio.Queue()

    def note(self, gap: Gap) -> None:
        """Remember a gap; called by the consumer before it reads on, in its own thread."""
        if self._loop is None:
            self._gaps.put_nowait(gap)
        else:
            self._loop.call_soon_threadsafe(self._gaps.put_nowait, gap)

    async def run(self) -> None:
        """Publish gaps until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            entry = self._outbox.record(_entry(await self._gaps.get()))
            while True:
                try:
                    await self._publisher.publish([entry])
                    self._metrics.outputs.journal.labels(JournalKind.GAP).inc()
                    break
                except AppendFailed as error:
                    log.warning("gap_not_journaled", error=str(error), hint="the broker does not answer; trying again")
                    await asyncio.sleep(RETRY_S)


def _entry(gap: Gap) -> JournalEntry:
    return JournalEntry(
        journal_id=digest("gap", gap.tp.topic, gap.tp.partition, gap.start, gap.stop),
        kind=JournalKind.GAP,
        reason=gap.cause.name.lower(),
        session_id=None,
        project=None,
        turn_id=None,
        trace_id=None,
        metric=None,
        detail=f"{gap.tp.topic}-{gap.tp.partition} {_offsets(gap)}: {gap.cause.value}",
        time=time.time_ns() // 1_000_000,
    )


def _offsets(gap: Gap) -> str:
    if gap.stop > gap.start:
        return f"offsets {gap.start} to {gap.stop - 1}"
    return f"wanted offset {gap.start}, read on from {gap.stop}"
