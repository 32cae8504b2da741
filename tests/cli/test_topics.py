"""tgate topics, against a broker."""

import json

from streams.topics import BY_ROLE
from tests.cli.running import PARTITIONS, Topics


def test_missing_topics_are_named_with_what_to_do(bare: Topics) -> None:
    result = bare.run("topics", "check")
    assert result.exit_code == 1
    assert "error: topics are not ready:" in result.stderr
    assert "`tgate topics create` makes them" in result.stderr
    listed = bare.run("topics", "list")
    assert listed.exit_code == 0
    assert listed.stdout.count("missing") == len(BY_ROLE)


def test_check_as_json_says_what_is_wrong(bare: Topics) -> None:
    result = bare.run("topics", "check", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["ready"]) == (1, False)
    assert len(answer["problems"]) == 1
    assert answer["problems"][0].startswith("missing: ")


def test_created_once_then_found(bare: Topics) -> None:
    first = [json.loads(line) for line in bare.run("topics", "create", "--json").stdout.splitlines()]
    assert {row["result"] for row in first} == {"created"}
    assert len(first) == len(BY_ROLE)
    again = bare.run("topics", "create")
    assert again.exit_code == 0
    assert again.stdout.count("exists") == len(BY_ROLE)
    assert bare.run("topics", "check").exit_code == 0
    assert json.loads(bare.run("topics", "check", "--json").stdout) == {"ready": True, "problems": []}


def test_listed_for_programs(topics: Topics) -> None:
    rows = {row["role"]: row for row in map(json.loads, topics.run("topics", "list", "--json").stdout.splitlines())}
    assert rows.keys() == BY_ROLE.keys()
    notices = rows["notices"]
    assert notices["topic"] == topics.settings.topic_names["notices"]
    assert (notices["exists"], notices["partitions"], notices["key"]) == (True, PARTITIONS, "session_id")


def test_reading_and_publishing_say_that_topics_are_missing(bare: Topics) -> None:
    for args in (("notices",), ("session", "show", "s1"), ("publish", "-"), ("worker",), ("breaker", "reset", "p")):
        result = bare.run(*args, stdin='{"session_id": "s1", "trace_id": "t1"}\n')
        assert result.exit_code == 1, args
        assert "tgate topics create" in result.stderr
        assert result.stdout == ""
