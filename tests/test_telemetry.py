"""What is logged, at which level, how it looks, and that a library cannot flood it."""

import json
import logging

import pytest
import structlog

from streams import telemetry
from streams.settings import load
from streams.telemetry import Repeats


def _configure(**overrides: str) -> None:
    telemetry.configure(load(overrides=overrides, environ={}).settings)


def test_ours_and_theirs_are_json_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    _configure(log_format="json")
    structlog.get_logger("streams.somewhere").info("said", partition=3)
    logging.getLogger("aiokafka.client").warning("node %s is away", 1)
    captured = capsys.readouterr()
    ours, theirs = map(json.loads, captured.err.splitlines())
    assert captured.out == ""
    assert (ours["event"], ours["partition"], ours["level"]) == ("said", 3, "info")
    assert (theirs["event"], theirs["logger"], theirs["level"]) == ("node 1 is away", "aiokafka.client", "warning")


def test_a_person_gets_a_short_line_without_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    _configure()
    structlog.get_logger("streams.somewhere").warning("a \x1b[2J b", key="value")
    line = capsys.readouterr().err
    assert line[8:].split() == ["[warning", "]", "a", "?[2J", "b", "key=value"]


def test_an_exception_is_a_plain_traceback_without_locals(capsys: pytest.CaptureFixture[str]) -> None:
    _configure()
    try:
        _fail("hunter" + str(2))
    except ValueError:
        structlog.get_logger("streams.somewhere").exception("failed")
    said = capsys.readouterr().err
    assert "ValueError: 7" in said
    assert "hunter2" not in said


def _fail(password: str) -> None:
    raise ValueError(len(password))


def test_records_nobody_wants_are_not_built() -> None:
    _configure(log_level="INFO")
    assert not logging.getLogger("streams.somewhere").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("aiokafka.client").isEnabledFor(logging.INFO)
    _configure(log_level="DEBUG")
    assert logging.getLogger("aiokafka.client").isEnabledFor(logging.DEBUG)


def test_a_library_that_repeats_itself_is_heard_once_in_a_while() -> None:
    repeats = Repeats(pause_s=10)

    def passes(name: str, text: str, at: float) -> bool:
        record = logging.LogRecord(name, logging.ERROR, "", 0, text, (), None)
        record.created = at
        return repeats.filter(record)

    assert [passes("aiokafka", "away", at) for at in (0, 1, 9, 10, 11)] == [True, False, False, True, False]
    assert passes("aiokafka", "something else", 11)
    assert [passes("streams.agents.owner", "ours", at) for at in (0, 1)] == [True, True]
