"""Counting: once for each batch that is done, nothing for one that failed, and labels that cannot grow."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from streams.agents.metering import Meter
from streams.core.model import Decision, JournalEntry, JournalKind, Outcome, Severity, TurnSettled
from streams.engine import AppendFailed, Batch, Recovery, Revoked
from streams.engine.lanes import Lane, Reading
from streams.errors import InvalidRecord, UnknownFormat
from streams.metrics import STAGES, Metrics

NOW = 1_767_603_600.0


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Metrics:
    monkeypatch.setattr("streams.agents.metering.time.time", lambda: NOW)
    return Metrics()


def batch(*ages_s: float) -> Batch:
    """A batch of records that are so many seconds old."""
    records: list[Any] = [SimpleNamespace(offset=n, timestamp=int((NOW - age) * 1000)) for n, age in enumerate(ages_s)]
    return Batch(Lane(TP("log", 0), Reading(), 0), records, len(records))


def handle(metrics: Metrics, item: Batch, work: Callable[[Batch], Awaitable[None]]) -> None:
    asyncio.run(Meter("session", metrics).measured(work)(item))


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


async def done(item: Batch) -> None:
    item.done()


def test_a_done_batch_is_observed_once(metrics: Metrics) -> None:
    handle(metrics, batch(4.0, 1.0, 0.5), done)
    handle(metrics, batch(0.0), done)
    assert value(metrics, "tgate_records_read_total", stage="session", topic="log") == 4
    assert value(metrics, "tgate_batch_records_count", stage="session") == 2
    assert value(metrics, "tgate_batch_records_sum", stage="session") == 4
    assert value(metrics, "tgate_latency_seconds_sum", stage="session") == 4.0, "the first record of each batch"
    assert value(metrics, "tgate_batch_failures_total", stage="session") == 0


def test_a_record_from_the_future_has_not_waited(metrics: Metrics) -> None:
    handle(metrics, batch(-60.0), done)
    assert value(metrics, "tgate_latency_seconds_sum", stage="session") == 0


@pytest.mark.parametrize(("error", "failures"), [(AppendFailed("no ack"), 1), (Revoked("gone"), 0)])
def test_a_batch_that_fails_is_a_failure_and_nothing_else(metrics: Metrics, error: Exception, failures: int) -> None:
    async def fail(_: Batch) -> None:
        raise error

    with pytest.raises(type(error)):
        handle(metrics, batch(1.0), fail)
    assert value(metrics, "tgate_batch_failures_total", stage="session") == failures
    assert value(metrics, "tgate_batch_records_count", stage="session") == 0


def test_what_a_batch_puts_out_counts_when_it_is_acknowledged(metrics: Metrics) -> None:
    meter = Meter("session", metrics)
    late = JournalEntry("id", JournalKind.LATE, "turn_decided", "s", None, None, None, None, "", 0)
    settled = TurnSettled("id", "s", "p", None, "t", Outcome.POSTED, "", None, 0)  # type: ignore[arg-type]
    thrown_away, tally = meter.tally(), meter.tally()
    for each in (thrown_away, tally):
        for output in (late, late, settled):
            each.output(output)
        each.dead_letter(UnknownFormat("?"))
    assert value(metrics, "tgate_late_scores_total") == 0
    tally.count()
    assert value(metrics, "tgate_late_scores_total") == 2
    assert value(metrics, "tgate_journal_entries_total", kind="late") == 2
    assert value(metrics, "tgate_settlements_total", outcome="posted") == 1
    assert value(metrics, "tgate_dead_letters_total", stage="session", error="UnknownFormat") == 1


def test_every_possible_label_value_is_there_from_the_start(metrics: Metrics) -> None:
    for name, label, values in [
        ("tgate_decisions_total", "decision", Decision),
        ("tgate_notices_total", "severity", Severity),
        ("tgate_settlements_total", "outcome", Outcome),
        ("tgate_journal_entries_total", "kind", JournalKind),
        ("tgate_batch_seconds_count", "stage", STAGES),
    ]:
        for each in values:
            assert value(metrics, name, **{label: each}) == 0, (name, each)


def test_labels_cannot_grow_with_the_data(metrics: Metrics) -> None:
    """Stages, topics, partitions, enum members and error classes: no session, trace, project or metric name."""
    labels = {label for family in metrics.registry.collect() for sample in family.samples for label in sample.labels}
    allowed = {"stage", "topic", "partition", "decision", "severity", "outcome", "kind", "tier", "error", "le"}
    assert labels <= allowed
    assert len(InvalidRecord.__subclasses__()) < 20


def test_every_metric_says_what_it_means_and_has_its_unit_in_its_name(metrics: Metrics) -> None:
    for family in metrics.registry.collect():
        if family.name.startswith("tgate_"):
            assert family.documentation.endswith("."), family.name
            if family.type == "histogram":
                assert family.name.endswith(("_seconds", "_records")), family.name


def test_recovery_goes_with_its_partition(metrics: Metrics) -> None:
    meter = Meter("session", metrics)
    meter.recovered(3, Recovery(40, 1.5))
    assert value(metrics, "tgate_recovery_records", stage="session", partition="3") == 40
    assert value(metrics, "tgate_recovery_seconds", stage="session", partition="3") == 1.5
    meter.closed(3)
    meter.closed(4)
    assert value(metrics, "tgate_recovery_records", stage="session", partition="3") is None


def test_two_workers_in_one_process_do_not_share(metrics: Metrics) -> None:
    metrics.worker.ticks.inc()
    assert value(Metrics(), "tgate_ticks_appended_total") == 0
