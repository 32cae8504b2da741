"""The access rights cover exactly our topics, give each role what it needs and no more, and follow the settings' names."""

import subprocess
from pathlib import Path

import pytest

from streams import tables
from streams.engine.changelog import transactional_ids
from streams.evaluators.app import SUFFIX
from streams.settings import Settings
from streams.topics import (
    BREAKER_STATES,
    BY_ROLE,
    DEAD_LETTERS,
    DETECTION,
    EVAL_LOG,
    EVAL_REQUESTS,
    EVAL_RUNS,
    EVAL_SCORES,
    EVALUATORS,
    JOURNAL,
    MONITORS,
    NOTICE_CANDIDATES,
    NOTICES,
    SESSION_LOG,
    SESSION_STATES,
    TRACE_INGESTED,
    TRACES,
    TURN_REPORTS,
    TURN_SETTLED,
)

ACLS = Path(__file__).parents[1] / "infra" / "acls"
EVERY_TOPIC = "every-topic"


def rows() -> list[tuple[str, str, set[str], list[str]]]:
    lines = (line.partition("#")[0].split() for line in (ACLS / "acls.txt").read_text().splitlines())
    return [
        (role, resource, set(operations.split(",")), names)
        for role, resource, operations, *names in filter(None, lines)
    ]


def topics(role: str, operation: str) -> set[str]:
    """Return the topics on which a role may do something."""
    found: set[str] = set()
    for who, resource, operations, names in rows():
        if who == role and resource == "topic" and operation in operations:
            found |= set(BY_ROLE) if names == [EVERY_TOPIC] else set(names)
    return found


def acls(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", ACLS / "acls.sh", *arguments], capture_output=True, text=True, check=False)


def test_exactly_our_topics_are_covered() -> None:
    named = {name for _, resource, _, names in rows() if resource == "topic" for name in names}
    assert named - {EVERY_TOPIC} == set(BY_ROLE)


def test_a_worker_checks_every_topic_and_creates_none() -> None:
    assert topics("worker", "DescribeConfigs") == DETECTION
    assert topics("worker", "Read") | topics("worker", "Write") == DETECTION
    assert topics("worker", "Create") == set()
    inputs = {TRACE_INGESTED, EVAL_SCORES}
    logs = {SESSION_LOG, NOTICE_CANDIDATES, SESSION_STATES, BREAKER_STATES}
    assert topics("worker", "Read") == inputs | logs
    assert topics("worker", "Write") == DETECTION - inputs


def test_evaluators_check_the_topics_they_use_and_create_none() -> None:
    assert topics("evaluators", "DescribeConfigs") == EVALUATORS
    assert topics("evaluators", "Read") | topics("evaluators", "Write") == EVALUATORS
    assert topics("evaluators", "Create") == set()
    assert topics("evaluators", "Read") == EVALUATORS - {EVAL_RUNS, MONITORS, JOURNAL, DEAD_LETTERS}
    assert topics("evaluators", "Write") == EVALUATORS - {TRACES, SESSION_LOG}
    assert set(BY_ROLE) == DETECTION | EVALUATORS


def test_what_the_others_may_do() -> None:
    assert topics("admin", "Create") == set(BY_ROLE)
    assert topics("admin", "Read") | topics("admin", "Write") == set()
    assert topics("agent", "Write") == {TRACE_INGESTED, EVAL_SCORES}
    assert topics("agent", "Read") == {NOTICES, TURN_SETTLED, TURN_REPORTS}
    assert topics("evaluator", "Read") == {EVAL_REQUESTS, TRACES}
    assert topics("operator", "Read") == set(BY_ROLE)
    asked = {EVAL_LOG, EVAL_RUNS, MONITORS}
    assert topics("operator", "Write") == {NOTICE_CANDIDATES, TRACE_INGESTED, EVAL_SCORES, DEAD_LETTERS} | asked


def test_the_documentation_says_the_same() -> None:
    page = (ACLS.parents[1] / "docs" / "security.md").read_text().splitlines()
    start = page.index("| role | resource | may | names |") + 2
    told = [line.replace("`", "").strip("| ").split(" | ") for line in page[start : page.index("", start)]]
    said = [(role, resource, set(may.split(", ")), names.split(", ")) for role, resource, may, names in told]
    assert said == rows()


def test_only_workers_fence() -> None:
    """By the names that the stages give their transactional ids."""
    found = {role: names for role, resource, _, names in rows() if resource == "transactional-id"}
    assert found.keys() == {"worker", "evaluators"}
    ours = {
        "worker": ("gate", (tables.SESSIONS, tables.BREAKERS)),
        "evaluators": (
            f"gate{SUFFIX}",
            (tables.EVAL_TRACES, tables.EVAL_SIGNALS, tables.EVAL_REQUESTS, tables.EVAL_RUNS),
        ),
    }
    for role, (app_id, used) in ours.items():
        prefixes = tuple(name.replace("{app-id}", "gate").removesuffix("*") for name in found[role])
        for table in used:
            assert all(name.startswith(prefixes) for name in transactional_ids(app_id, table, 3))


def test_no_prefix_of_one_role_reaches_the_group_of_another() -> None:
    groups = [(role, name) for role, resource, _, names in rows() if resource == "group" for name in names]
    prefixes = [(role, name.removesuffix("*")) for role, name in groups if name.endswith("*")]
    assert not [
        (role, name) for role, name in groups for other, prefix in prefixes if name.startswith(prefix) and role != other
    ]


def test_names_follow_the_settings() -> None:
    printed = acls(
        "print", "--role", "worker", "--prefix", "team.", "--topic", "notices=alarms", "--app-id", "gate"
    ).stdout
    assert "--topic team.session-log " in printed
    assert "--topic alarms " in printed
    assert "notices" not in printed.replace("notice-candidates", "")
    assert "--group gate --resource-pattern-type literal" in printed
    assert (
        "--transactional-id gate-sessions- --transactional-id gate-breakers- --resource-pattern-type prefixed"
        in printed
    )
    assert "--allow-principal User:tgate-worker " in printed
    default = Settings.model_fields["app_id"].default
    assert f"--group {default} " in acls("print", "--role", "worker").stdout


def test_a_principal_of_ones_own() -> None:
    printed = acls("print", "--role", "agent", "--principal", "User:CN=agent 7").stdout
    assert printed.count(r"--allow-principal User:CN=agent\ 7 ") == len(printed.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "usage: acls.sh print"),
        (("apply",), "--bootstrap is needed"),
        (("print", "--role", "root"), "no role root; there are: admin agent evaluator evaluators operator worker"),
        (("print", "--principal", "User:x"), "--principal needs --role"),
        (("print", "--topic", "notice=x"), "no topic notice; there are: breaker-states"),
        (("print", "--topic", "notices"), "--topic is DEFAULT=NAME, not notices"),
        (("print", "--app-id"), "--app-id needs a value"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    told = acls(*arguments)
    assert told.returncode == 2
    assert message in told.stderr


def test_a_tool_that_fails_is_told(tmp_path: Path) -> None:
    tool = tmp_path / "kafka-acls"
    tool.write_text("#!/bin/sh\necho 'no broker there'\nexit 1\n")
    tool.chmod(0o755)
    command = ["bash", ACLS / "acls.sh", "apply", "--bootstrap", "127.0.0.1:1"]
    told = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", "KAFKA_ACLS": str(tool)}, capture_output=True, text=True, check=False
    )
    assert told.returncode == 1
    assert "no broker there" in told.stderr
