"""Counts the batches of a stage and what they put out, once all of it is acknowledged."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import prometheus_client
import structlog

from streams.agents.outbox import EvalOutput, Output
from streams.core.model import EvalCase, EvalRequest, JournalEntry, JournalKind, NeedsHuman, Notice, Report, TurnSettled
from streams.engine import Batch, Recovery, Revoked
from streams.metrics import Metrics, OutputMetrics

log = structlog.get_logger(__name__)

Handle = Callable[[Batch], Awaitable[None]]
Kind = tuple[prometheus_client.Counter, tuple[str, ...]]
"""A counter and the values of its labels."""


class Tally:
    """What one batch puts out. One that fails is thrown away, so that a batch read again counts once."""

    def __init__(self, stage: str, metrics: OutputMetrics) -> None:
        self._stage = stage
        self._metrics = metrics
        self._seen: Counter[Kind] = Counter()

    def output(self, output: Output | EvalOutput) -> None:
        """Note an output."""
        known = self._metrics
        match output:
            case Report():
                self._seen[known.decisions, (output.decision,)] += 1
            case TurnSettled():
                self._seen[known.settlements, (output.outcome,)] += 1
            case JournalEntry():
                self._seen[known.journal, (output.kind,)] += 1
                self._seen[known.late_scores, ()] += output.kind is JournalKind.LATE
            case Notice():
                self._seen[known.notices, (output.severity,)] += 1
            case NeedsHuman():
                self._seen[known.needs_human, ()] += 1
            case EvalRequest():
                self._seen[known.eval_requests, (str(output.tier),)] += 1
            case EvalCase():
                self._seen[known.eval_cases, ()] += 1
            case _:
                """A candidate is counted as the decision that made it, an event of the eval log as what it leads to."""

    def dead_letter(self, error: Exception) -> None:
        """Note a record that could not be read."""
        self._seen[self._metrics.dead_letters, (self._stage, type(error).__name__)] += 1

    def count(self) -> None:
        """Add what was noted to the metrics, and warn of what a person should know: everything is acknowledged."""
        self._warn()
        for (counter, labels), times in self._seen.items():
            (counter.labels(*labels) if labels else counter).inc(times)

    def _warn(self) -> None:
        """One line a batch at most, and none for a batch that has nothing to tell."""
        known = self._metrics
        refused = {labels[1]: times for (counter, labels), times in self._seen.items() if counter is known.dead_letters}
        if refused:
            log.warning("dead_letters", stage=self._stage, **refused, hint="`tgate dlq list` says why")
        if tripped := self._seen.get((known.needs_human, ())):
            log.warning(
                "breaker_tripped",
                projects=tripped,
                hint="`tgate needs-human` says which, `tgate breaker reset` ends it",
            )


class Meter:
    """The metrics as one stage uses them."""

    def __init__(self, stage: str, metrics: Metrics) -> None:
        self.stage = stage
        self._metrics = metrics
        self._records: dict[str, prometheus_client.Counter] = {}
        self._failures = metrics.stages.failures.labels(stage)
        self._batch_records = metrics.stages.batch_records.labels(stage)
        self._batch_seconds = metrics.stages.batch_seconds.labels(stage)
        self._latency_seconds = metrics.stages.latency_seconds.labels(stage)

    def tally(self) -> Tally:
        """Return an empty tally for the next batch."""
        return Tally(self.stage, self._metrics.outputs)

    def measured(self, handle: Handle) -> Handle:
        """Return the stage's function with its batches counted and timed."""

        async def handle_and_measure(batch: Batch) -> None:
            began = time.perf_counter()
            try:
                await handle(batch)
            except Revoked:
                raise
            except Exception:
                self._failures.inc()
                raise
            if batch.is_done:
                self._done(batch, time.perf_counter() - began)

        return handle_and_measure

    def _done(self, batch: Batch, seconds: float) -> None:
        topic = batch.tp.topic
        if topic not in self._records:
            self._records[topic] = self._metrics.stages.records.labels(self.stage, topic)
        self._records[topic].inc(len(batch))
        self._batch_records.observe(len(batch))
        self._batch_seconds.observe(seconds)
        # Clocks differ: a record from the future has not waited.
        self._latency_seconds.observe(max(0.0, time.time() - batch.records[0].timestamp / 1000))

    def recovered(self, partition: int, recovery: Recovery) -> None:
        """Show how long a partition took to recover."""
        self._metrics.partitions.recovery_seconds.labels(self.stage, partition).set(recovery.seconds)
        self._metrics.partitions.recovery_records.labels(self.stage, partition).set(recovery.records)

    def closed(self, partition: int) -> None:
        """Forget a partition that is not this worker's any more."""
        with suppress(KeyError):  # it had not come up
            self._metrics.partitions.recovery_seconds.remove(self.stage, partition)
            self._metrics.partitions.recovery_records.remove(self.stage, partition)
