"""A monitor's life: due once a time, rescheduled before it runs, paused, triggered, and never stopped by its runs."""

from dataclasses import replace

import pytest

from streams.core.model import JournalEntry, JournalKind, ScoreTarget
from streams.core.monitors import (
    MAX_RECENT_RUNS,
    Monitor,
    MonitorDeleted,
    MonitorDue,
    MonitorGone,
    MonitorPaused,
    MonitorPut,
    MonitorResumed,
    MonitorStatus,
    MonitorTriggered,
    step,
    triggered_run_id,
)
from streams.core.run_targets import Filters
from streams.core.runs import MonitorRunEnded, RunCreated

NOW = 9_000
FIRST, SECOND = 1_000, 2_000
MONITOR = Monitor(
    monitor_id="m",
    project="shop",
    name="nightly",
    target=ScoreTarget.SESSION,
    metrics=("agent_reliability",),
    cadence="daily",
    created_at=10,
    filters=Filters(tags=("vip",)),
    sampling_rate=0.5,
    model="small",
    signal_weights={"confidence": 0.3},
    thresholds={"agent_reliability": 0.7},
    next_run_at=FIRST,
)


def due(due_at=FIRST, next_at=SECOND, *, changed=True, ends=(3,)):
    return MonitorDue("m", due_at, due_at + 5, next_at, ends, changed)


def fold(*events, monitor=MONITOR):
    """Return the last state and what the last event put out."""
    state, outputs = step(None, MonitorPut(monitor), NOW)
    for event in events:
        state, outputs = step(state, event, NOW)
    return state, outputs


def runs(outputs):
    return [output.run for output in outputs if isinstance(output, RunCreated)]


def test_a_new_monitor_is_shown():
    state, outputs = fold()
    assert outputs == (MONITOR,)
    assert step(state, MonitorPut(MONITOR), NOW) == (state, ())


def test_a_due_monitor_is_rescheduled_and_asks_for_its_run():
    state, (shown, created) = fold(due())
    assert (shown.next_run_at, shown.last_run_at, shown.last_run_id) == (SECOND, FIRST + 5, created.run.run_id)
    assert state.ends == created.ends == (3,)
    run = created.run
    assert (run.project, run.name, run.target, run.metrics) == ("shop", "nightly", "SESSION", ("agent_reliability",))
    assert (run.filters, run.sampling_rate, run.model) == (MONITOR.filters, 0.5, "small")
    assert (run.signal_weights, run.thresholds) == ({"confidence": 0.3}, {"agent_reliability": 0.7})
    assert (run.monitor_id, run.status, run.created_at) == ("m", "PENDING", FIRST + 5)


def test_of_two_schedulers_one_counts():
    once, _ = fold(due())
    assert step(once, due(), NOW) == (once, ())
    assert step(once, due(next_at=77, ends=(4,)), NOW) == (once, ())


@pytest.mark.parametrize("at", [FIRST - 1, FIRST + 1, SECOND])
def test_a_time_that_is_not_the_next_one_is_not_due(at):
    state, _ = fold()
    assert step(state, due(at), NOW) == (state, ())


def test_runs_of_different_times_have_different_names_and_equal_ones_the_same():
    _, first = fold(due())
    _, again = fold(due(next_at=5_000))
    _, second = fold(due(), due(SECOND, 3_000))
    assert runs(first)[0].run_id == runs(again)[0].run_id != runs(second)[0].run_id


def test_nothing_new_since_the_last_run_leaves_a_run_out_and_says_so():
    state, (shown, entry) = fold(due(), due(SECOND, 3_000, changed=False, ends=(3,)))
    assert (shown.next_run_at, shown.last_run_at) == (3_000, FIRST + 5)
    assert isinstance(entry, JournalEntry)
    assert (entry.kind, entry.reason, entry.project) == (JournalKind.SKIP, "nothing_ingested", "shop")
    assert entry.detail == "monitor m (nightly): nothing new since its last run"
    assert runs(step(state, due(3_000, 4_000), NOW)[1])


def test_the_first_run_and_one_that_does_not_look_come_anyway():
    assert runs(fold(due(changed=False))[1])
    anyway = replace(MONITOR, only_if_changed=False)
    assert runs(fold(due(), due(SECOND, 3_000, changed=False), monitor=anyway)[1])


def test_pausing_and_resuming_are_idempotent():
    state, (paused,) = fold(MonitorPaused("m"))
    assert (paused.status, paused.next_run_at) == (MonitorStatus.PAUSED, None)
    assert step(state, MonitorPaused("m"), NOW) == (state, ())
    assert step(state, due(), NOW) == (state, ())
    state, (resumed,) = step(state, MonitorResumed("m", 4_000), NOW)
    assert (resumed.status, resumed.next_run_at) == (MonitorStatus.ACTIVE, 4_000)
    assert step(state, MonitorResumed("m", 8_000), NOW) == (state, ())


def test_a_trigger_runs_a_paused_monitor_and_leaves_its_schedule():
    state, outputs = fold(due(), MonitorPaused("m"), MonitorTriggered("m", 1_500, (3,)))
    (run,) = runs(outputs)
    assert run.run_id == triggered_run_id("m", 1_500)
    assert (state.monitor.status, state.monitor.next_run_at) == (MonitorStatus.PAUSED, None)
    assert state.monitor.last_run_id == run.run_id
    assert step(state, MonitorTriggered("m", 1_500, (3,)), NOW) == (state, ())
    active, outputs = fold(MonitorTriggered("m", 500, (3,)))
    assert active.monitor.next_run_at == FIRST
    assert runs(outputs)


def test_a_failing_run_is_counted_and_journaled_and_stops_nothing():
    state, _ = fold(due())
    first = state.monitor.last_run_id
    state, (shown, entry) = step(state, MonitorRunEnded("m", first, "no topic"), NOW)
    assert (shown.consecutive_failures, shown.status, shown.next_run_at) == (1, MonitorStatus.ACTIVE, SECOND)
    assert (entry.kind, entry.reason) == (JournalKind.RUN_FAILED, "monitor_run_broke")
    assert entry.detail == f"monitor m (nightly): run {first} broke, 1 in a row: no topic"
    assert step(state, MonitorRunEnded("m", first, "no topic"), NOW) == (state, ())
    state, outputs = step(state, due(SECOND, 3_000), NOW)
    state, (shown, entry) = step(state, MonitorRunEnded("m", runs(outputs)[0].run_id, "no topic"), NOW)
    assert (shown.consecutive_failures, "2 in a row" in entry.detail) == (2, True)
    state, outputs = step(state, due(3_000, 4_000), NOW)
    state, (shown,) = step(state, MonitorRunEnded("m", runs(outputs)[0].run_id, None), NOW)
    assert shown.consecutive_failures == 0


def test_a_run_of_no_monitor_or_of_another_one_changes_nothing():
    state, _ = fold(due())
    assert step(state, MonitorRunEnded("m", "someone else's", "x"), NOW) == (state, ())
    assert step(None, MonitorRunEnded("m", "r", "x"), NOW) == (None, ())


def test_other_wishes_leave_what_it_has_lived_through():
    state, _ = fold(due())
    wish = replace(MONITOR, name="hourly", metrics=("agent_consistency",), created_at=77, next_run_at=123)
    state, (shown,) = step(state, MonitorPut(wish), NOW)
    assert (shown.name, shown.metrics) == ("hourly", ("agent_consistency",))
    assert (shown.created_at, shown.next_run_at, shown.last_run_at) == (10, SECOND, FIRST + 5)
    state, (shown,) = step(state, MonitorPut(replace(wish, cadence="weekly")), NOW)
    assert (shown.cadence, shown.next_run_at) == ("weekly", 123)


def test_another_cadence_does_not_wake_a_paused_monitor():
    state, _ = fold(MonitorPaused("m"))
    _, (shown,) = step(state, MonitorPut(replace(MONITOR, cadence="weekly", next_run_at=55)), NOW)
    assert (shown.cadence, shown.status, shown.next_run_at) == ("weekly", MonitorStatus.PAUSED, None)


def test_a_deleted_monitor_is_gone_for_good():
    state, outputs = fold(MonitorDeleted("m"))
    assert outputs == (MonitorGone("m"),)
    late = (MonitorPut(MONITOR), MonitorDeleted("m"), due(), MonitorTriggered("m", 1, ()), MonitorResumed("m", 9))
    for event in late:
        assert step(state, event, NOW) == (state, ())


def test_what_it_remembers_of_its_runs_is_bounded():
    events = [MonitorTriggered("m", at, ()) for at in range(3 * MAX_RECENT_RUNS)]
    ends = [MonitorRunEnded("m", triggered_run_id("m", at), None) for at in range(3 * MAX_RECENT_RUNS)]
    state, _ = fold(*events, *ends)
    assert (len(state.running), len(state.ended)) == (0, MAX_RECENT_RUNS)


@pytest.mark.parametrize("event", [MonitorPaused("m"), MonitorDeleted("m"), due(), MonitorTriggered("m", 1, ())])
def test_of_an_unknown_monitor_nothing_is_said(event):
    assert step(None, event, NOW) == (None, ())
