"""The sweep says of every setting and session exactly what the core says, step by step."""

import itertools
import random
from typing import Any

import numpy as np
import pytest

from streams.calibration.sweep import REGRESSION, STALL, firings, sweep
from streams.calibration.tracks import Tracks, tracks
from streams.core.gate import Gate
from streams.core.model import Condition
from streams.core.notices import NoticeState, decide
from tests.core.vectors import cases

GATES = [
    Gate(window, target, gain, drop)
    for window, target, gain, drop in itertools.product(
        (0, 1, 2, 5, 9, 400), (0.0, 0.05, 0.5, 1.0), (0.0, 0.02, 0.1), (0.0, 0.15, 1.0)
    )
]
Session = tuple[str, list[list[float | None]], list[bool] | None]


def by_step(found: Tracks, gate: Gate, session: int) -> tuple[list[int], int, int]:
    """Return what fired at each trace, how many notices that makes, and at which trace the first one."""
    states = [gate.start() for _ in found.metrics]
    bits: list[int] = []
    dedup, held = NoticeState(), set[str]()
    notices = first = 0
    for trace, place in enumerate(range(found.starts[session], found.starts[session + 1]), 1):
        bits.append(0)
        for metric, value in enumerate(found.values[:, place]):
            if np.isnan(value):
                continue
            states[metric], fired = gate.step(states[metric], float(value))
            held |= {f"{condition}:{metric}" for condition in fired}
            bits[-1] |= (
                STALL * (Condition.STALL in fired) | REGRESSION * (Condition.REGRESSION in fired)
            ) << 2 * metric
        if found.ends is None or found.ends[place]:
            dedup, decision = decide(dedup, tuple(sorted(held)), 0)
            held = set()
            if decision.startswith("posted"):
                notices += 1
                first = first or trace
    return bits, notices, first


def assert_equal_to_steps(found: Tracks, gates: list[Gate]) -> None:
    result, fired = sweep(found, gates), firings(found, gates)
    for number, gate in enumerate(gates):
        for session in range(len(found.names)):
            bits, notices, first = by_step(found, gate, session)
            assert fired[number, found.starts[session] : found.starts[session + 1]].tolist() == bits, (gate, session)
            assert (result.notices[number, session], result.first[number, session]) == (notices, first), (gate, session)


def test_every_vector() -> None:
    vectors: list[dict[str, Any]] = cases("gate")
    found = tracks(("m",), [(str(at), [[value] for value in case["values"]], None) for at, case in enumerate(vectors)])
    gates = [Gate(**{name.removeprefix("gate_"): value for name, value in case["params"].items()}) for case in vectors]
    fired = firings(found, gates)
    for at, case in enumerate(vectors):
        held = fired[at, found.starts[at] : found.starts[at + 1]]
        expected = [[stall, regression] for _, _, stall, regression in case["expect"]]
        assert [[bool(bits & STALL), bool(bits & REGRESSION)] for bits in held] == expected


@pytest.mark.parametrize("seed", range(6))
def test_random_sessions(seed: int) -> None:
    """One or more metrics, values missing, turns of several traces, sessions of all lengths and none."""
    chance = random.Random(seed)
    metrics = tuple(f"m{at}" for at in range((1, 2, 5)[seed % 3]))

    def value() -> float | None:
        return None if seed > 1 and chance.random() < 0.2 else chance.choice((chance.random(), 0.5, 0.5 + 1e-17, 0.52))

    sessions: list[Session] = []
    for number in range(30):
        rows = [[value() for _ in metrics] for _ in range(chance.choice((0, 1, 2, 10, 30)))]
        ends = [chance.random() < 0.5 for _ in rows[:-1]] + [True] * bool(rows) if seed % 2 else None
        sessions.append((f"s{number}", rows, ends))
    assert_equal_to_steps(tracks(metrics, sessions), GATES[seed::6])


def test_more_sessions_than_a_chunk_and_a_window_longer_than_any() -> None:
    chance = random.Random(7)
    sessions: list[Session] = [
        (str(at), [[round(chance.random(), 2)] for _ in range(chance.randrange(6))], None) for at in range(600)
    ]
    assert_equal_to_steps(tracks(("m",), sessions), [Gate(), Gate(window=10**9), Gate(window=2, target=1.0)])


def test_no_sessions() -> None:
    found = sweep(tracks(("m",), []), [Gate()])
    assert found.notices.shape == (1, 0)
