"""An eval run's life: counted once, finished once, and broken only by the run itself."""

import pytest

from streams.core.model import JournalEntry, JournalKind, ScoreTarget
from streams.core.runs import (
    EvalRun,
    MonitorRunEnded,
    PartHandled,
    RunBroke,
    RunCreated,
    RunPlanned,
    RunState,
    RunStatus,
    step,
)

NOW = 5_000
RUN = EvalRun("r", "shop", "nightly", ScoreTarget.TRACE, ("coherence", "confidence"), created_at=1_000)
CREATED = RunCreated(RUN, (7, 9))


def handled(part, evaluated=2, failed=0, **more):
    return PartHandled("r", "s", part, evaluated, failed, **more)


def fold(*events, run=RUN):
    """Return the last state, and every record of the run that was put out."""
    state, shown = None, []
    for event in (RunCreated(run, (7, 9)), *events):
        state, outputs = step(state, event, NOW)
        shown += [output for output in outputs if isinstance(output, EvalRun)]
    return state, shown


def test_a_run_is_created_once():
    state, outputs = step(None, CREATED, NOW)
    assert outputs == (RUN,)
    assert (state.run, state.ends, state.parts) == (RUN, (7, 9), None)
    assert step(state, CREATED, NOW) == (state, ())
    assert step(state, RunCreated(RUN, (8, 8)), NOW) == (state, ())


def test_its_counters_grow_with_each_part_until_the_last_completes_it():
    _, shown = fold(
        RunPlanned("r", 5, 3),
        handled(2, 1, input_tokens=10, output_tokens=2, judge_calls=3, cost=0.5),
        handled(0, failed=1, input_tokens=1),
        handled(1),
    )
    found = [(run.status, run.evaluated_count, run.failed_count, run.completed_at) for run in shown]
    assert found == [
        ("PENDING", 0, 0, None),
        ("RUNNING", 0, 0, None),
        ("RUNNING", 1, 0, None),
        ("RUNNING", 3, 1, None),
        ("COMPLETED", 5, 1, NOW),
    ]
    last = shown[-1]
    assert (last.total_targets, last.error_message) == (5, None)
    assert (last.input_tokens, last.output_tokens, last.judge_calls, last.cost) == (11, 2, 3, 0.5)


def test_a_part_counts_once():
    once, _ = fold(RunPlanned("r", 4, 2), handled(0))
    assert step(once, handled(0), NOW) == (once, ())
    assert step(once, handled(0, 9, 9), NOW) == (once, ())


@pytest.mark.parametrize("part", [-1, 2, 63, 1_000_000])
def test_a_part_that_was_not_asked_for_changes_nothing(part):
    state, _ = fold(RunPlanned("r", 4, 2))
    assert step(state, handled(part), NOW) == (state, ())


def test_many_parts_in_any_order():
    order = sorted(range(200), key=lambda part: part * 37 % 200)
    state, shown = fold(RunPlanned("r", 400, 200), *(handled(part) for part in order))
    assert [run.evaluated_count for run in shown[1:]] == [2 * done for done in range(201)]
    assert state.run.status is RunStatus.COMPLETED
    assert state.handled == ()


def test_evaluators_may_be_done_before_the_plan_is_known_to_be_complete():
    _, shown = fold(handled(1), handled(0), RunPlanned("r", 4, 2))
    assert [(run.status, run.evaluated_count, run.total_targets) for run in shown[1:]] == [
        ("RUNNING", 2, 0),
        ("RUNNING", 4, 0),
        ("COMPLETED", 4, 4),
    ]


def test_an_empty_plan_is_a_completed_run():
    state, shown = fold(RunPlanned("r", 0, 0))
    assert [(run.status, run.total_targets) for run in shown] == [("PENDING", 0), ("COMPLETED", 0)]
    assert step(state, RunPlanned("r", 3, 1), NOW) == (state, ())


def test_a_run_whose_every_score_failed_is_completed():
    state, _ = fold(RunPlanned("r", 2, 1), handled(0, 2, failed=4))
    assert (state.run.status, state.run.failed_count) == (RunStatus.COMPLETED, 4)


def test_a_run_that_breaks_says_why_and_is_over():
    state, _ = fold(RunPlanned("r", 4, 2), handled(0))
    broken, outputs = step(state, RunBroke("r", "no\x1b topic"), NOW)
    run, entry = outputs
    assert (run.status, run.error_message, run.completed_at) == (RunStatus.FAILED, "no  topic", NOW)
    assert (run.evaluated_count, run.total_targets) == (2, 4)
    assert isinstance(entry, JournalEntry)
    assert (entry.kind, entry.reason, entry.project) == (JournalKind.RUN_FAILED, "run_broke", "shop")
    assert entry.detail == "eval run r (nightly): no  topic"
    for event in (handled(1), RunBroke("r", "again"), RunPlanned("r", 4, 2), CREATED):
        assert step(broken, event, NOW) == (broken, ())


@pytest.mark.parametrize("event", [RunPlanned("r", 1, 1), handled(0), RunBroke("r", "x")])
def test_of_an_unknown_run_nothing_is_said(event):
    assert step(None, event, NOW) == (None, ())


def test_a_monitor_hears_how_its_run_ended():
    run = EvalRun("r", "shop", "n", ScoreTarget.TRACE, ("coherence",), 1, monitor_id="m")
    planned, _ = step(RunState(run, ()), RunPlanned("r", 0, 0), NOW)
    assert planned is not None
    assert step(RunState(run, ()), RunPlanned("r", 0, 0), NOW)[1][-1] == MonitorRunEnded("m", "r", None)
    assert step(RunState(run, ()), RunBroke("r", "x"), NOW)[1][-1] == MonitorRunEnded("m", "r", "x")
