"""Journals that the judge or the embedder stopped answering, or answers again."""

import asyncio
import time
from typing import Final

import structlog

from streams.agents.outbox import Outbox
from streams.core.ids import digest
from streams.core.model import JournalEntry, JournalKind
from streams.engine import AppendFailed, Publisher
from streams.evaluators.health import HealthChange
from streams.metrics import Metrics
from streams.settings import Settings

log = structlog.get_logger(__name__)

RETRY_S: Final = 1.0


class HealthJournal:
    """Takes changes as they happen and publishes them, each until it has its ack."""

    def __init__(self, settings: Settings, publisher: Publisher, outbox: Outbox, metrics: Metrics) -> None:
        self._app_id = settings.app_id
        self._publisher = publisher
        self._outbox = outbox
        self._metrics = metrics
        self._changes: asyncio.Queue[HealthChange] = asyncio.Queue()

    def tell(self, change: HealthChange) -> None:
        """Take in a change."""
        self._metrics.evaluators.degraded.labels(change.part).set(not change.healthy)
        self._changes.put_nowait(change)

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            entry = _entry(self._app_id, await self._changes.get())
            while True:
                try:
                    await self._publisher.publish([self._outbox.record(entry)])
                except AppendFailed as error:
                    log.warning(
                        "health_not_journaled", error=str(error), hint="the broker does not answer; trying again"
                    )
                    await asyncio.sleep(RETRY_S)
                else:
                    self._metrics.outputs.journal.labels(entry.kind).inc()
                    break


def _entry(app_id: str, change: HealthChange) -> JournalEntry:
    now = time.time_ns() // 1_000_000
    reason = f"{change.part}_{'back' if change.healthy else 'degraded'}"
    return JournalEntry(
        journal_id=digest("evaluator_health", app_id, reason, now),
        kind=JournalKind.HEALTH,
        reason=reason,
        session_id=None,
        project=None,
        turn_id=None,
        trace_id=None,
        metric=None,
        detail=change.reason,
        time=now,
    )
