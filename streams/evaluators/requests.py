"""The evaluate stage: takes requests in, has them worked on in the background, and never waits for that."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import structlog

from streams.agents.metering import Meter, Tally
from streams.core.eval_states import StagePosition
from streams.core.model import EvalRequest
from streams.engine import Batch, Out, PartitionState
from streams.errors import InvalidRecord
from streams.evaluators.metrics import METRICS
from streams.evaluators.request_book import RequestBook
from streams.evaluators.request_work import Desk, RequestWork

log = structlog.get_logger(__name__)

DRAIN_S: Final = 20.0
"""How long a stop waits for scores that are under way."""

Rebuild = Callable[[PartitionState], None]
"""Brings a partition up again from what its changelog holds."""


class EvaluateStage:
    """Owns the requests of the assigned eval-requests partitions."""

    def __init__(self, desk: Desk, meter: Meter) -> None:
        self._desk = desk
        self._meter = meter
        self._work: dict[int, RequestWork] = {}
        self._strange: set[str] = set()
        self.rebuild: Rebuild = lambda _: None

    async def on_restored(self, partition: int, state: PartitionState) -> int:
        """Take a partition up where its position record says, and work on what is open."""
        book = RequestBook(state, round(self._desk.settings.session_ttl_s * 1000))
        work = self._work[partition] = RequestWork(self._desk, state, book, lambda: self.rebuild(state))
        self._meter.recovered(partition, state.recovery)
        work.take(book.open)
        return book.place.position

    def on_closed(self, partition: int) -> None:
        """Stop working on a partition that is not this worker's any more."""
        if (work := self._work.pop(partition, None)) is not None:
            work.close()
        self._meter.closed(partition)

    async def handle(self, batch: Batch) -> None:
        """Store what is asked for anew, then start with it."""
        work = self._work[batch.partition]
        tally = self._meter.tally()
        requests, unreadable = self._read(batch, tally)
        await self._desk.publisher.publish(unreadable)
        now = max([work.book.place.now, *(record.timestamp for record in batch.records)])
        try:
            clock = time.time_ns() // 1_000_000
            fresh, changes = work.book.accept(requests, StagePosition(batch.next_offset, now), clock)
            await batch.state.commit(changes)
        except BaseException:
            # The book is ahead of what is stored.
            self.rebuild(batch.state)
            raise
        work.take(sorted(fresh))
        batch.done()
        tally.count()

    async def drain(self) -> None:
        """Finish what is under way, as far as that goes; what is left is done by the next worker."""
        if not self._work:
            return
        drains = [asyncio.ensure_future(work.drain()) for work in self._work.values()]
        _, unfinished = await asyncio.wait(drains, timeout=DRAIN_S)
        for drain in unfinished:
            drain.cancel()
        if unfinished:
            log.info("scores_left", partitions=len(unfinished), hint="the next worker makes them")

    def _read(self, batch: Batch, tally: Tally) -> tuple[Sequence[EvalRequest], Sequence[Out]]:
        requests: list[EvalRequest] = []
        unreadable: list[Out] = []
        for record in batch.records:
            try:
                request = self._desk.wire.read_eval_request(record.value)
            except InvalidRecord as error:
                unreadable.append(self._desk.outbox.dead_letter(record, error))
                tally.dead_letter(error)
                continue
            if metrics := self._ours(request.metrics):
                requests.append(replace(request, metrics=metrics))
        return requests, unreadable

    def _ours(self, metrics: Sequence[str]) -> tuple[str, ...]:
        """Return the metrics that we know; others are somebody else's to answer, or a mistake."""
        for name in set(metrics) - METRICS.keys() - self._strange:
            self._strange.add(name)
            known = ", ".join(METRICS)
            log.warning("metric_not_ours", metric=name, hint=f"left to evaluators of your own; ours are {known}")
        return tuple(name for name in metrics if name in METRICS)
