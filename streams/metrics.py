"""Every metric of a worker, each defined once: its name with its unit, its meaning and its labels."""

from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics

from streams.core.model import Decision, JournalKind, Outcome, Severity

STAGES: Final = ("ingest", "session", "breaker")
EVALUATOR_STAGES: Final = ("catalog", "signals", "evaluate", "runs")

BATCH_RECORDS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
BATCH_SECONDS: Final = (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
LATENCY_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Wide: live records take milliseconds, a backlog of an hour shows as more than the last one."""

ALL_OF_IT: Final = ("stage", "topic", "partition")


class StageMetrics:
    """What each stage gets through; observed once a batch, after all acks."""

    def __init__(self, registry: CollectorRegistry, stages: Iterable[str]) -> None:
        self.records = Counter(
            "tgate_records_read_total",
            "Records of an input topic that a stage has dealt with: their outputs are acknowledged, their state is stored.",
            ("stage", "topic"),
            registry=registry,
        )
        self.failures = Counter(
            "tgate_batch_failures_total",
            "Batches that failed and were read again, for instance because an ack did not come.",
            ("stage",),
            registry=registry,
        )
        self.batch_records = Histogram(
            "tgate_batch_records",
            "Records in a batch.",
            ("stage",),
            buckets=BATCH_RECORDS,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "tgate_batch_seconds",
            "Seconds a batch takes, from its hand-over to the stage to its last ack.",
            ("stage",),
            buckets=BATCH_SECONDS,
            registry=registry,
        )
        self.latency_seconds = Histogram(
            "tgate_latency_seconds",
            "Seconds from a record's Kafka timestamp (for our own logs: its append) to the acks of its outputs and state; "
            "of each batch's first record, which waited longest.",
            ("stage",),
            buckets=LATENCY_SECONDS,
            registry=registry,
        )
        for stage in stages:
            for metric in (self.failures, self.batch_records, self.batch_seconds, self.latency_seconds):
                metric.labels(stage)


class OutputMetrics:
    """What was decided and published; a batch that was read again is counted once, when it is done."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decisions = _counted(
            registry, "tgate_decisions_total", "Turn reports, by what became of them and why.", "decision", Decision
        )
        self.notices = _counted(registry, "tgate_notices_total", "Notices posted to agents.", "severity", Severity)
        self.needs_human = Counter(
            "tgate_needs_human_total",
            "Calls for a human: circuit breakers that tripped, each once.",
            registry=registry,
        )
        self.settlements = _counted(
            registry,
            "tgate_settlements_total",
            "Diagnoses that landed, by outcome; `suppressed` counts while a project's circuit breaker is tripped.",
            "outcome",
            Outcome,
        )
        self.journal = _counted(
            registry,
            "tgate_journal_entries_total",
            "Events worth keeping, by kind; `gap` means that records were lost unread.",
            "kind",
            JournalKind,
        )
        self.late_scores = Counter(
            "tgate_late_scores_total",
            "Scores that came after their turn was decided, or for nothing known: they changed nothing.",
            registry=registry,
        )
        self.eval_requests = _counted(
            registry,
            "tgate_eval_requests_total",
            "Requests to evaluators, repeats included, by tier.",
            "tier",
            ("0", "1", "2", "3"),
        )
        self.eval_cases = Counter(
            "tgate_eval_cases_total", "Posted breaches kept as replayable test cases.", registry=registry
        )
        self.dead_letters = Counter(
            "tgate_dead_letters_total",
            "Records that could not be read, by the class of the error that says why.",
            ("stage", "error"),
            registry=registry,
        )


class PartitionMetrics:
    """Where this worker stands in each partition it owns; a partition that goes away takes its series along."""

    def __init__(self, registry: CollectorRegistry, stages: Iterable[str]) -> None:
        self.assigned = _by_stage(
            registry, stages, "tgate_partitions_assigned", "Input partitions that the group gave to this worker."
        )
        self.owned = _by_stage(
            registry,
            stages,
            "tgate_partitions_owned",
            "Of those, how many are recovered and being read; the rest recover.",
        )
        self.position = _by_partition(
            registry, "tgate_position_offset", "Next offset: every record before it is dealt with."
        )
        self.lag = _by_partition(registry, "tgate_lag_records", "Records in the partition that are not dealt with.")
        self.progress = _by_partition(
            registry,
            "tgate_progress_timestamp_seconds",
            "When the position last moved, or when reading began, in seconds since 1970.",
        )
        self.stalled = _by_partition(
            registry,
            "tgate_partition_stalled",
            "1 while records wait and none was dealt with for stall_warn_s, or its recovery has not moved for as long; else 0.",
        )
        self.recovery_seconds = Gauge(
            "tgate_recovery_seconds",
            "Seconds the partition's last recovery took: fencing the former owner and reading the changelog.",
            ("stage", "partition"),
            registry=registry,
        )
        self.recovery_records = Gauge(
            "tgate_recovery_records",
            "Changelog records that the partition's last recovery read.",
            ("stage", "partition"),
            registry=registry,
        )


class WorkerMetrics:
    """The process itself and its broker."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.ticks = Counter(
            "tgate_ticks_appended_total", "Ticks appended to session-log, which let waits run out.", registry=registry
        )
        self.clock_skew = Gauge(
            "tgate_clock_skew_seconds",
            "How far this machine's clock is ahead of the broker's, at the last ack; past max_clock_skew_s no ticks are appended.",
            registry=registry,
        )
        self.broker_away = Gauge(
            "tgate_broker_away",
            "1 while the broker does not say where partitions end: lag is then the last one known; else 0.",
            registry=registry,
        )
        self.loop_blocked = Gauge(
            "tgate_loop_blocked_seconds",
            "How long the worker's event loop has not turned; more than 0 only while it is asked and silent.",
            registry=registry,
        )


class EvaluatorMetrics:
    """What evaluators score, and what that takes; nothing of it on a worker of detection."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.open_requests = Gauge(
            "tgate_eval_open_requests",
            "Requests to evaluators that are stored and not answered; many, and growing, means that judges are too slow.",
            ("partition",),
            registry=registry,
        )
        self.scores = Counter(
            "tgate_eval_scores_total", "Scores that evaluators have made.", ("metric", "status"), registry=registry
        )
        self.seconds = Histogram(
            "tgate_eval_seconds",
            "Seconds from the start of a request to one of its scores: waiting for the trace, for a turn and for the judge.",
            ("metric",),
            buckets=LATENCY_SECONDS,
            registry=registry,
        )
        self.tokens = Counter(
            "tgate_eval_tokens_total",
            "Tokens that models have read and written for scores.",
            ("direction",),
            registry=registry,
        )
        self.cost = Counter(
            "tgate_eval_cost_total",
            "What models have cost, by the prices that the settings name.",
            registry=registry,
        )
        self.degraded = Gauge(
            "tgate_eval_degraded",
            "1 while the judge or the embedder does not answer, so that its scores are FAILED; else 0.",
            ("part",),
            registry=registry,
        )


class Metrics:
    """All metrics of one worker, in a registry of their own."""

    def __init__(self, stages: Sequence[str] = STAGES) -> None:
        # One extra series beside each counter, which says when it was made: noise that nothing here reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.stages = StageMetrics(self.registry, stages)
        self.outputs = OutputMetrics(self.registry)
        self.partitions = PartitionMetrics(self.registry, stages)
        self.worker = WorkerMetrics(self.registry)
        self.evaluators = EvaluatorMetrics(self.registry)


def _counted(registry: CollectorRegistry, name: str, meaning: str, label: str, values: Iterable[str]) -> Counter:
    """Return a counter that shows each possible label value from the start: a rate needs the 0 before the first 1."""
    counter = Counter(name, meaning, (label,), registry=registry)
    for value in values:
        counter.labels(str(value))
    return counter


def _by_stage(registry: CollectorRegistry, stages: Iterable[str], name: str, meaning: str) -> Gauge:
    gauge = Gauge(name, meaning, ("stage",), registry=registry)
    for stage in stages:
        gauge.labels(stage)
    return gauge


def _by_partition(registry: CollectorRegistry, name: str, meaning: str) -> Gauge:
    return Gauge(name, meaning, ALL_OF_IT, registry=registry)
