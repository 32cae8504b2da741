"""tgate runs: what is asked for, what is refused before anything is created, and what is shown of runs and scores."""

import json
from dataclasses import replace
from typing import Any

import pytest

from streams.core.eval_log import EvalLogRecord
from streams.core.model import ScoreTarget, TraceStatus
from streams.core.run_targets import Filters
from streams.core.runs import EvalRun, RunCreated, RunStatus
from streams.engine import Out, partition_for
from streams.topics import EVAL_LOG, EVAL_RUNS, EVAL_SCORES, MONITORS, TRACES
from streams.wire import Wire
from tests.cli.running import PARTITIONS, Topics

RUN = EvalRun(
    "0" * 31 + "1",
    "shop",
    "nightly",
    ScoreTarget.TRACE,
    ("coherence", "task_completion"),
    created_at=1_767_603_600_000,
    status=RunStatus.COMPLETED,
    total_targets=3,
    evaluated_count=3,
    failed_count=2,
    completed_at=1_767_603_602_500,
)


def trace(trace_id: str, session: str = "s", **fields: Any) -> dict[str, Any]:
    given = {"trace_id": trace_id, "session_id": session, "name": "look", "status": "COMPLETED", "started_at": 1_000}
    return {"project": "shop", **given, **fields}


def ingest(topics: Topics, *traces: dict[str, Any]) -> None:
    """Put traces where ingest would."""
    name = topics.settings.topic_names[TRACES]
    topics.put([], *(Out(name, partition_for(b"s", PARTITIONS), b"s", json.dumps(one).encode()) for one in traces))


def score(name: str, trace_id: str | None, value: float | None, **fields: Any) -> dict[str, Any]:
    success = {} if value is None else {"success": value >= 0.5}
    return {
        "score_id": f"{name}-{trace_id}",
        "session_id": "s",
        "trace_id": trace_id,
        "name": name,
        "value": None if value is None else str(value),
        "status": "FAILED" if value is None else "SUCCESS",
        "eval_run_id": RUN.run_id,
        "created_at": RUN.created_at,
        "reason": "because",
        "metadata": {"threshold": 0.5, **success},
        **fields,
    }


def publish(topics: Topics, *scores: dict[str, Any]) -> None:
    name = topics.settings.topic_names[EVAL_SCORES]
    topics.put([], *(Out(name, 0, b"s", json.dumps(one).encode()) for one in scores))


def events(topics: Topics) -> list[Any]:
    found = [Wire().read_eval_log_record(record.value, 0, 0) for record in topics.records(EVAL_LOG)]
    return [record.body for record in found if isinstance(record, EvalLogRecord)]


def assert_nothing_was_created(topics: Topics) -> None:
    assert [topics.records(role) for role in (EVAL_LOG, EVAL_RUNS, MONITORS)] == [[], [], []]


def test_a_run_is_pending_at_once_and_told_to_evaluators(topics: Topics) -> None:
    ingest(topics, *(trace(f"t{number}", tags=["vip"]) for number in range(10)), trace("u", tags=[]))
    ingest(topics, trace("t0", tags=[], user_id="ada"))
    options = ("-m", "coherence", "-m", "confidence", "-m", "coherence", "--project", "shop", "--tag", "vip")
    more = ("--sample", "0.5", "--model", "big", "--threshold", "coherence=0.7", "--name", "first")
    result = topics.run("runs", "create", *options, *more)
    assert result.exit_code == 0
    (created,) = events(topics)
    assert isinstance(created, RunCreated)
    run = created.run
    assert f"created run {run.run_id}: 5 traces, coherence, confidence" in result.stdout
    assert (run.metrics, run.filters, run.sampling_rate) == (("coherence", "confidence"), Filters(tags=("vip",)), 0.5)
    assert (run.project, run.name, run.model, run.thresholds) == ("shop", "first", "big", {"coherence": 0.7})
    assert sum(created.ends) == 12
    (shown,) = map(json.loads, topics.run("runs", "list", "--json").stdout.splitlines())
    assert (shown["run_id"], shown["status"], shown["target"]) == (run.run_id, "PENDING", "TRACE")
    assert "its targets are not chosen yet" in topics.run("runs", "show", run.run_id[:6]).stdout


def test_all_filters_of_traces_and_of_sessions_reach_the_run(topics: Topics) -> None:
    ingest(topics, trace("t1", user_id="ada", status="ERROR", started_at=1_767_603_600_000, name="Find the key"))
    days = ("--from", "2026-01-01T00:00+00:00", "--to", "2026-02-01T00:00+00:00", "--user", "ada", "--project", "shop")
    traces = ("--status", "ERROR", "--session", "s", "--trace-name", "KEY")
    assert topics.run("runs", "create", "-m", "coherence", *days, *traces).exit_code == 0
    sessions = ("--target", "session", "--has-error", "--min-traces", "1", "--weight", "confidence=0.25")
    assert topics.run("runs", "create", "-m", "agent_reliability", *days, *sessions).exit_code == 0
    named = topics.run("runs", "create", "-m", "coherence", "--id", "t1", "--project", "shop", "--json")
    assert json.loads(named.stdout)["filters"]["trace_ids"] == ["t1"]
    found = {event.run.target: event.run for event in events(topics) if not event.run.filters.trace_ids}
    span = {"date_from": 1_767_225_600_000, "date_to": 1_769_904_000_000, "user_id": "ada"}
    of_traces = Filters(**span, status=TraceStatus.ERROR, session_id="s", name="KEY")
    assert found[ScoreTarget.TRACE].filters == of_traces
    assert found[ScoreTarget.SESSION].filters == Filters(**span, has_error=True, min_trace_count=1)
    assert found[ScoreTarget.SESSION].signal_weights == {"confidence": 0.25}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "a run needs at least one metric; over a TRACE these are possible: task_completion"),
        (("-m", "nonsense"), "there is no metric 'nonsense'"),
        (("-m", "loop_detection"), "loop_detection needs a run over a SESSION"),
        (("-m", "coherence", "--sample", "1.5"), "the sampling rate is 1.5"),
        (("-m", "coherence", "--min-traces", "2"), "a run over a TRACE has no filter min_trace_count"),
        (("-m", "coherence", "--id", "t", "--tag", "x"), "trace_ids name what to go over: leave out tags"),
        (("-m", "coherence", "--threshold", "coherence=2"), "the threshold of coherence is 2.0"),
        (("-m", "coherence", "--threshold", "nonsense=0.2"), "there is no metric 'nonsense'"),
        (("-m", "coherence", "--threshold", "coherence"), "is not NAME=NUMBER, such as coherence=0.7"),
        (("-m", "agent_reliability", "--target", "session", "--weight", "confidence=-1"), "weight of confidence is -1"),
        (("-m", "agent_reliability", "--target", "session", "--weight", "x=1"), "'x' is no signal"),
        (("-m", "coherence", "--name", "a\x1bb"), "without control characters"),
        (("-m", "coherence", "--tag", "no such"), "no trace of project shop matches; there are traces of shop (1)"),
        (("-m", "coherence", "--sample", "0", "--tag", "no such"), "no trace of project shop matches"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_created(topics: Topics, options: tuple[str, ...], said: str) -> None:
    ingest(topics, trace("t"))
    result = topics.run("runs", "create", "--project", "shop", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert_nothing_was_created(topics)


def test_without_any_trace_it_says_where_to_look(topics: Topics) -> None:
    result = topics.run("runs", "create", "-m", "coherence")
    assert result.exit_code == 2
    assert "the topic of traces is empty; publish some, or see whether a worker runs" in result.stderr
    assert_nothing_was_created(topics)


def test_runs_are_listed_with_their_progress_and_the_ladders_only_when_asked_for(topics: Topics) -> None:
    running = replace(RUN, run_id="a" * 32, status=RunStatus.RUNNING, evaluated_count=1, created_at=RUN.created_at + 1)
    ladder = replace(RUN, run_id="b" * 32, turn_id="s/t1", name="tier 1 of turn s/t1")
    topics.put([running, RUN, replace(running, evaluated_count=2), ladder])
    lines = topics.run("runs", "list").stdout.splitlines()
    assert [line.split()[2:6] for line in lines[1:]] == [
        ["00000000", "COMPLETED", "3", "of"],
        ["aaaaaaaa", "RUNNING", "2", "of"],
    ]

    def ids(*options: str) -> list[str]:
        found = topics.run("runs", "list", "--json", *options).stdout.splitlines()
        return [json.loads(line)["run_id"][-1] for line in found]

    assert ids("--status", "RUNNING") == ["a"]
    assert ids("--ladder", "--last", "2") == ["b", "a"]
    assert ids("--project", "other") == []
    shown = topics.run("runs", "show", "0000").stdout
    assert "3 of 3 traces, 2 failed scores" in shown
    assert "2.5 s later" in shown
    for name, said in (("f", "there is no run 'f'"), ("", "say more of its id")):
        result = topics.run("runs", "show", name)
        assert result.exit_code == 1
        assert said in result.stderr


def test_watching_a_run_that_has_ended_says_how(topics: Topics) -> None:
    broken = replace(RUN, run_id="c" * 32, status=RunStatus.FAILED, error_message="no topic")
    topics.put([replace(RUN, status=RunStatus.RUNNING), RUN, broken])
    watched = topics.run("runs", "show", RUN.run_id, "--watch", "--json")
    assert watched.exit_code == 0
    assert json.loads(watched.stdout.splitlines()[-1])["status"] == "COMPLETED"
    failed = topics.run("runs", "show", "cc", "--watch")
    assert failed.exit_code == 1
    assert "no topic" in failed.stdout
    assert "\x1b" not in failed.output


def test_scores_of_a_run_are_listed_and_summed_up(topics: Topics) -> None:
    topics.put([RUN])
    publish(
        topics,
        score("coherence", "t1", 0.75),
        score("coherence", "t2", 0.25),
        score("coherence", "t1", 0.75),
        score("task_completion", "t1", None),
        score("task_completion", "t1", 0.5, score_id="of another", eval_run_id="another"),
    )
    lines = topics.run("runs", "scores", RUN.run_id).stdout.splitlines()
    assert [line.split()[1:5] for line in lines[1:4]] == [
        ["t1", "coherence", "0.75", "passed"],
        ["t1", "task_completion", "failed", "because"],
        ["t2", "coherence", "0.25", "below"],
    ]
    assert lines[-2].split() == ["coherence", "2", "0.5000", "1", "of", "2", "0"]
    assert lines[-1].split() == ["task_completion", "1", "-", "0", "of", "0", "1"]
    (failed,) = map(json.loads, topics.run("runs", "scores", RUN.run_id, "--failed", "--json").stdout.splitlines())
    assert (failed["name"], failed["metadata"]) == ("task_completion", {"threshold": 0.5})
    assert len(topics.run("runs", "scores", "0", "--metric", "coherence", "--json").stdout.splitlines()) == 2


def test_a_retry_is_a_new_run_over_what_failed(topics: Topics) -> None:
    run = replace(RUN, model="big", thresholds={"task_completion": 0.6}, filters=Filters(tags=("vip",)))
    topics.put([run])
    failed = [score("task_completion", name, None) for name in ("t1", "t2")]
    publish(topics, score("coherence", "t1", 0.75), *failed)
    result = topics.run("runs", "retry", "0000", "--json")
    assert result.exit_code == 0
    (created,) = events(topics)
    again = created.run
    assert json.loads(result.stdout)["run_id"] == again.run_id != run.run_id
    assert (again.retry_of, again.metrics, again.status) == (run.run_id, ("task_completion",), RunStatus.PENDING)
    assert (again.project, again.model, again.thresholds) == ("shop", "big", {"task_completion": 0.6})
    assert "2 failed scores of run" in topics.run("runs", "retry", run.run_id).stdout


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (replace(RUN, status=RunStatus.RUNNING), "is RUNNING: what fails is not known before it has ended"),
        (replace(RUN, failed_count=0), "no score of run"),
        (RUN, "the 2 failed scores of run"),
        (replace(RUN, status=RunStatus.FAILED, failed_count=0, error_message="no topic"), "create it anew (no topic)"),
    ],
)
def test_where_there_is_nothing_to_retry_nothing_is_created(topics: Topics, run: EvalRun, said: str) -> None:
    topics.put([run])
    publish(topics, score("coherence", "t1", 0.75))
    result = topics.run("runs", "retry", run.run_id)
    assert result.exit_code == 2
    assert said in result.stderr
    assert topics.records(EVAL_LOG) == []
