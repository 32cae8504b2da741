"""tgate monitors: what is asked for, what is refused before anything is created, and what is shown."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from streams.core.model import ScoreTarget
from streams.core.monitors import (
    Monitor,
    MonitorDeleted,
    MonitorPaused,
    MonitorPut,
    MonitorResumed,
    MonitorStatus,
    MonitorTriggered,
    triggered_run_id,
)
from streams.core.run_targets import Filters
from streams.core.runs import EvalRun
from streams.topics import EVAL_LOG, EVAL_RUNS, MONITORS
from streams.wire import Wire
from tests.cli.running import PARTITIONS, Topics

DAY = 86_400_000
NIGHTLY = Monitor(
    "0" * 31 + "1",
    "shop",
    "nightly",
    ScoreTarget.TRACE,
    ("coherence",),
    "daily",
    created_at=1_767_603_600_000,
    filters=Filters(tags=("vip",), status=None),
    sampling_rate=0.1,
    next_run_at=1_767_690_000_000,
)


def events(topics: Topics) -> list[Any]:
    return [Wire().read_eval_log_record(record.value, 0, 0).body for record in topics.records(EVAL_LOG)]


def now() -> int:
    return int(time.time() * 1000)


def test_a_monitor_is_there_at_once_and_told_to_evaluators(topics: Topics) -> None:
    before = now()
    options = ("-m", "coherence", "--project", "shop", "--name", "nightly", "--tag", "vip", "--sample", "0.1")
    result = topics.run("monitors", "create", "--cadence", "daily", "--always", *options)
    assert result.exit_code == 0
    (put,) = events(topics)
    assert isinstance(put, MonitorPut)
    monitor = put.monitor
    assert f"created monitor {monitor.monitor_id}: daily, next at " in result.stdout
    assert (monitor.metrics, monitor.filters, monitor.sampling_rate) == (("coherence",), Filters(tags=("vip",)), 0.1)
    assert (monitor.status, monitor.only_if_changed, monitor.last_run_at) == (MonitorStatus.ACTIVE, False, None)
    assert before + DAY <= monitor.next_run_at <= now() + DAY
    (shown,) = map(json.loads, topics.run("monitors", "list", "--json").stdout.splitlines())
    assert shown["monitor_id"] == monitor.monitor_id
    assert "traces of project shop, tags vip; a sample of 0.1" in topics.run("monitors", "show", "nightly").stdout


def test_needless_spaces_of_a_cadence_are_left_out(topics: Topics) -> None:
    weekly = ("--target", "session", "--cadence", "cron:  0 6 *  * 1 ")
    assert topics.run("monitors", "create", "-m", "agent_reliability", *weekly).exit_code == 0
    (put,) = events(topics)
    assert (put.monitor.cadence, put.monitor.only_if_changed) == ("cron:0 6 * * 1", True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say how often with --cadence"),
        (("--cadence", "hourly"), "the cadence 'hourly' is none of every_6h, daily, weekly"),
        (("--cadence", "cron:0 0 31 2 *"), "is never due"),
        (("--cadence", "cron:R 0 * * *"), "names no fixed time"),
        (("--cadence", "cron:* * * * * *"), "has 6 fields, expected five"),
        (("--cadence", "cron:@daily"), "has 1 fields, expected five"),
        (("--cadence", "daily", "-m", "nonsense"), "there is no metric 'nonsense'"),
        (("--cadence", "daily", "--sample", "-1"), "the sampling rate is -1"),
        (("--cadence", "daily", "--weight", "confidence=-1"), "the weight of confidence is -1"),
        (("--cadence", "daily", "--has-error"), "a run over a TRACE has no filter has_error"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_created(topics: Topics, options: tuple[str, ...], said: str) -> None:
    result = topics.run("monitors", "create", "-m", "coherence", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert [topics.records(role) for role in (EVAL_LOG, MONITORS)] == [[], []]


def test_no_metric_is_refused(topics: Topics) -> None:
    result = topics.run("monitors", "create", "--cadence", "daily")
    assert (result.exit_code, "a run needs at least one metric" in result.stderr) == (2, True)
    assert topics.records(EVAL_LOG) == []


def test_what_people_say_of_a_monitor_is_told_to_evaluators(topics: Topics) -> None:
    topics.put([NIGHTLY])
    begin = now()
    for command in ("pause", "resume", "delete"):
        result = topics.run("monitors", command, "nightly")
        assert result.exit_code == 0
        assert result.stdout == f"asked for: {command} monitor nightly, as soon as an evaluator has read this\n"
    triggered = topics.run("monitors", "trigger", NIGHTLY.monitor_id[:5], "--json")
    paused, resumed, deleted, trigger = events(topics)
    name = NIGHTLY.monitor_id
    assert (paused, deleted) == (MonitorPaused(name), MonitorDeleted(name))
    assert isinstance(resumed, MonitorResumed)
    assert begin + DAY <= resumed.next_at <= now() + DAY
    assert isinstance(trigger, MonitorTriggered)
    assert trigger.ends == (0,) * PARTITIONS
    assert json.loads(triggered.stdout) == {"monitor_id": name, "run_id": triggered_run_id(name, trigger.at)}
    asked = topics.run("monitors", "pause", "nightly", "--json").stdout
    assert json.loads(asked) == {"monitor_id": name, "asked_for": "pause"}


def test_an_update_changes_what_is_said_and_nothing_else(topics: Topics) -> None:
    topics.put([NIGHTLY])
    assert topics.run("monitors", "update", "nightly", "-m", "confidence", "--user", "ada").exit_code == 0
    begin = now()
    more = ("--clear", "filters", "--tag", "new", "--cadence", "weekly", "--always", "--name", "other")
    assert topics.run("monitors", "update", "nightly", *more).exit_code == 0
    first, second = events(topics)
    filters = Filters(tags=("vip",), user_id="ada")
    assert first == MonitorPut(replace(NIGHTLY, metrics=("confidence",), filters=filters))
    assert (second.monitor.filters, second.monitor.cadence) == (Filters(tags=("new",)), "weekly")
    assert (second.monitor.name, second.monitor.only_if_changed) == ("other", False)
    assert begin + 7 * DAY <= second.monitor.next_run_at <= now() + 7 * DAY
    refused = topics.run("monitors", "update", "nightly", "--target", "session")
    assert refused.exit_code == 2
    assert "coherence needs a run over a TRACE" in refused.stderr
    assert len(events(topics)) == 2


def test_monitors_are_listed_as_they_stand(topics: Topics) -> None:
    paused = replace(NIGHTLY, status=MonitorStatus.PAUSED, next_run_at=None, consecutive_failures=3)
    other = replace(NIGHTLY, monitor_id="f" * 32, name="late", project="other", created_at=NIGHTLY.created_at + 1)
    topics.put([NIGHTLY, other, paused])
    lines = topics.run("monitors", "list").stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["00000000", "nightly", "PAUSED", "daily"],
        ["ffffffff", "late", "ACTIVE", "daily"],
    ]
    assert len(topics.run("monitors", "list", "--project", "other").stdout.splitlines()) == 2
    shown = topics.run("monitors", "show", "nightly").stdout
    assert "3 runs in a row" in shown
    assert "paused: it runs when it is triggered" in shown


def test_a_monitors_runs_are_those_it_asked_for(topics: Topics) -> None:
    run = EvalRun("r1", "shop", "nightly", ScoreTarget.TRACE, ("coherence",), 1, monitor_id=NIGHTLY.monitor_id)
    topics.put([NIGHTLY, run, replace(run, run_id="r2", monitor_id=None)])
    (found,) = map(json.loads, topics.run("monitors", "runs", "nightly", "--json").stdout.splitlines())
    assert found["run_id"] == "r1"


@pytest.mark.parametrize("command", ["show", "pause", "resume", "trigger", "delete", "runs", "update"])
def test_an_unknown_monitor_is_a_sentence(topics: Topics, command: str) -> None:
    result = topics.run("monitors", command, "nobody")
    assert result.exit_code == 1
    assert "error: there is no monitor 'nobody'; `tgate monitors list` shows all" in result.stderr
    assert [topics.records(role) for role in (EVAL_LOG, EVAL_RUNS)] == [[], []]
