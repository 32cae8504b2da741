"""`step`, everything a session's record goes through but its bytes: records folded a second, young and old sessions."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.micro.made import events, folded

TRACES = 300


@pytest.mark.parametrize("before", [0, 1_000, 10_000])
def test_step(benchmark: Any, say_rate: Callable[[str, int], None], before: int) -> None:
    start = folded(events(before)) if before else None
    found = events(TRACES, before)
    state = benchmark(folded, found, start)
    assert state.turn_count == before + TRACES
    say_rate("records", len(found))
