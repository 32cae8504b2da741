"""The trajectory gate alone: values folded a second."""

from collections.abc import Callable
from random import Random
from typing import Any

from streams.core.gate import Gate

VALUES = 10_000


def test_gate_fold(benchmark: Any, say_rate: Callable[[str, int], None]) -> None:
    gate, chance = Gate(), Random(1)
    values = [round(chance.random(), 3) for _ in range(VALUES)]

    def fold() -> int:
        state = gate.start()
        for value in values:
            state, _ = gate.step(state, value)
        return state.seen

    assert benchmark(fold) == VALUES
    say_rate("values", VALUES)
