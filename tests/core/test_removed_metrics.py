"""What is kept of metrics that the rules name no longer: nothing, also for sessions that slept through it."""

from streams.core.gate import GateState
from tests.core.logbook import Log, Worker, fold_all

STYLE = ("task_completion", "coherence", "style")


def styled(log: Log, session_id: str, trace_id: str, at: float) -> None:
    log.trace(session_id, trace_id, at)
    for metric in STYLE:
        log.score(session_id, metric, 0.3, trace_id)


def gates(worker: Worker) -> list[str]:
    return sorted(worker.state("s").gates)


def test_the_gate_of_a_removed_metric_is_dropped():
    log = Log(tier1_metrics=STYLE)
    styled(log, "s", "a", 0)
    log.rules(tier1_metrics=STYLE[:2])
    log.turn("s", "b", 0.3, at=1)
    worker = fold_all(log.records)
    assert gates(worker) == ["coherence", "task_completion"]
    assert worker.state("s").gates["task_completion"] == GateState(0.3, 1, 2)


def test_a_session_that_slept_through_removal_and_return_starts_anew():
    log = Log(tier1_metrics=STYLE)
    styled(log, "s", "a", 0)
    log.rules(tier1_metrics=STYLE[:2])
    log.rules(tier1_metrics=STYLE)
    styled(log, "s", "b", 1)
    worker = fold_all(log.records)
    assert worker.state("s").gates["style"] == GateState(0.3, 0, 1)
    assert worker.state("s").gates["coherence"] == GateState(0.3, 1, 2)


def test_the_same_holds_after_a_restart_between():
    log = Log(tier1_metrics=STYLE)
    styled(log, "s", "a", 0)
    worker = fold_all(log.records).save().restarted()
    worker = worker.run([log.rules(tier1_metrics=STYLE[:2])]).save().restarted()
    worker = worker.run([log.rules(tier1_metrics=STYLE)]).save().restarted()
    seen = len(log.records)
    styled(log, "s", "b", 1)
    assert worker.run(log.records[seen:]).state("s").gates["style"] == GateState(0.3, 0, 1)


def test_rules_that_change_something_else_drop_nothing():
    log = Log(tier1_metrics=STYLE)
    styled(log, "s", "a", 0)
    log.rules(tier1_metrics=STYLE[::-1], gate_window=3)
    assert gates(fold_all(log.records)) == ["coherence", "style", "task_completion"]


def test_the_detectors_of_a_removed_metric_are_dropped():
    log = Log(session_metrics=("agent_reliability", "politeness"))
    log.score("s", "politeness", 0.9)
    log.score("s", "agent_reliability", 0.9)
    log.rules(session_metrics=("agent_reliability",))
    assert sorted(fold_all(log.records).state("s").detectors) == ["agent_reliability"]


def test_a_metric_that_changes_lanes_leaves_its_gate_behind():
    log = Log(tier1_metrics=STYLE)
    styled(log, "s", "a", 0)
    log.rules(tier1_metrics=STYLE[:2], session_metrics=("style",))
    assert gates(fold_all(log.records)) == ["coherence", "task_completion"]


def test_a_metric_that_changes_lanes_leaves_its_detectors_behind():
    log = Log(session_metrics=("agent_reliability", "style"))
    log.score("s", "style", 0.9)
    log.rules(tier1_metrics=STYLE)
    assert sorted(fold_all(log.records).state("s").detectors) == []


def test_the_open_problem_of_a_removed_session_metric_goes_with_it():
    log = Log(session_metrics=("agent_reliability", "politeness"))
    log.score("s", "politeness", 0.1)
    log.rules(session_metrics=("agent_reliability",))
    log.score("s", "agent_reliability", 0.1)
    log.score("s", "agent_reliability", 0.9)
    reports = [output for _, output in fold_all(log.records).outputs if hasattr(output, "decision")]
    assert [report.decision for report in reports] == ["posted_new", "posted_new", "recovered"]


def test_a_metric_of_the_session_lane_by_name_keeps_its_detectors_unlisted():
    log = Log(session_metrics=("agent_reliability",))
    for value in (0.95, 0.95, 0.95, 0.7):
        log.score("s", "agent_consistency", value)
    worker = fold_all(log.records)
    reports = [output for _, output in worker.outputs if hasattr(output, "decision")]
    assert reports[-1].signatures == ("trend:agent_consistency",)
