"""Journals every stretch of offsets that was wanted and cannot be read any more."""

import time

from streams.agents.outbox import Outbox
from streams.core.ids import digest
from streams.core.model import JournalEntry, JournalKind
from streams.engine import Gap, Publisher
from streams.metrics import Metrics


class GapJournal:
    """Publishes gaps; reading goes on only after that, so that each is in the journal whatever happens."""

    def __init__(self, publisher: Publisher, outbox: Outbox, metrics: Metrics) -> None:
        self._publisher = publisher
        self._outbox = outbox
        self._metrics = metrics

    async def record(self, gap: Gap) -> None:
        """Journal a gap and wait for the ack; the same gap again has the same id.

        Raises:
            AppendFailed: the ack did not come.
        """
        await self._publisher.publish([self._outbox.record(_entry(gap))])
        self._metrics.outputs.journal.labels(JournalKind.GAP).inc()


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
