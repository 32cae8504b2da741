"""Rates of what is folded in one go, said in the last lines: the table has the time of the whole go only."""

from collections.abc import Callable
from typing import Any

import pytest

_said: list[str] = []


@pytest.fixture
def say_rate(benchmark: Any, request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Return a function that takes the unit and how many of it one go has."""

    def say(unit: str, count: int) -> None:
        per_s = benchmark.extra_info[f"{unit}_per_s"] = count / benchmark.stats.stats.median
        _said.append(f"{request.node.name}: {per_s:,.0f} {unit}/s")

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _said:
        terminalreporter.write_line(line)
