"""kafka.sh says what was refused and what to do; no Java and no Maven is needed to ask it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "infra" / "kafka"
MISSING = 4
WRONG_USAGE = 2


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the scripts into which nothing has been fetched, beside a Java and no Maven."""
    shutil.copytree(SCRIPTS, tmp_path / "kafka", ignore=shutil.ignore_patterns("jars*"))
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "cat", "cmp", "dirname", "grep", "head", "mkdir", "mv", "ps", "rm", "sed", "seq", "tr"):
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    add_tool(tmp_path, "java", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    return tmp_path


def add_tool(checkout: Path, name: str, script: str) -> None:
    tool = checkout / "bin" / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def kafka(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [checkout / "kafka" / "kafka.sh", *arguments],
        env=environment | {"PATH": str(checkout / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_maven(checkout: Path) -> None:
    told = kafka(checkout, "resolve")
    assert told.returncode == MISSING
    assert "no mvn on PATH" in told.stderr
    assert "Install Maven, then run: " in told.stderr


def test_what_maven_was_refused(checkout: Path) -> None:
    add_tool(checkout, "mvn", "echo '[ERROR] Could not find artifact kafka_2.13'; exit 1")
    told = kafka(checkout, "resolve")
    assert told.returncode == MISSING
    assert "[ERROR] Could not find artifact kafka_2.13" in told.stderr
    assert "a mirror or proxy goes into ~/.m2/settings.xml" in told.stderr
    assert not list((checkout / "kafka").glob("jars*"))


def test_jars_are_fetched_once_for_each_pom(checkout: Path) -> None:
    calls = checkout / "calls"
    # The last argument is -DoutputDirectory=DIR.
    add_tool(checkout, "mvn", f'echo called >>{calls}; for last; do :; done; mkdir -p "${{last#*=}}"')
    (checkout / "bin" / "cp").symlink_to(shutil.which("cp") or "/bin/cp")
    for _ in range(2):
        assert kafka(checkout, "resolve").returncode == 0
    assert calls.read_text().split() == ["called"]
    pom = checkout / "kafka" / "pom.xml"
    pom.write_text(pom.read_text() + "<!-- another -->\n")
    assert kafka(checkout, "resolve").returncode == 0
    assert calls.read_text().split() == ["called", "called"]


def test_java_that_is_too_old(checkout: Path) -> None:
    add_tool(checkout, "java", "echo 'java version \"1.8.0_402\"' >&2")
    told = kafka(checkout, "start", "--dir", str(checkout / "data"))
    assert told.returncode == MISSING
    assert "is Java 1, Kafka needs 17 or newer" in told.stderr


def test_no_java(checkout: Path) -> None:
    (checkout / "bin" / "java").unlink()
    told = kafka(checkout, "start", "--dir", str(checkout / "data"))
    assert told.returncode == MISSING
    assert "Install Java 17 or newer" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("start",), "--dir is needed"),
        (("start", "--dir"), "--dir needs a value"),
        (("start", "--dir", "data", "--brokers", "2"), "--brokers is 1 or 3, not 2"),
        (("start", "--dir", "data", "--port", "x"), "--port is a number, not x"),
        (("start", "--dir", "data", "--only", "2"), "no broker 2"),
        (("start", "--dir", "a,b"), "must not contain a comma"),
        (("start", "--dir", "data", "--extra", "nowhere"), "--extra nowhere cannot be read"),
        (("begin",), "usage: kafka.sh"),
    ],
)
def test_wrong_usage(checkout: Path, arguments: tuple[str, ...], message: str) -> None:
    told = kafka(checkout, *arguments)
    assert told.returncode == WRONG_USAGE
    assert message in told.stderr


def test_status_of_nothing(checkout: Path) -> None:
    told = kafka(checkout, "status", "--dir", str(checkout / "data"))
    assert (told.returncode, told.stdout) == (1, "broker 1: not running\n")
