"""How long the gate's sweep takes: scores x sessions x settings, from decoded arrays; and the decode by itself.

    python benchmarks/calibration.py

The bar: 1,000,000 scores in 20,000 sessions x 200 settings within 10 s on two cores and under 2 GiB.
"""

import asyncio
import itertools
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from streams.agents.outbox import Output
from streams.calibration.seen import Seen
from streams.calibration.sweep import sweep
from streams.calibration.tracks import Tracks
from streams.core.gate import Gate
from streams.core.rules import Rules
from streams.lines import opened, split
from streams.replay.files import Reader
from streams.replay.folding import Replay
from streams.replay.running import replay_inputs
from streams.wire import Wire

RECORDING = Path(__file__).parents[1] / "examples" / "recording" / "sessions.jsonl.gz"
SIZES = (
    (10_000, 500, 200),
    (100_000, 2_000, 200),
    (1_000_000, 20_000, 50),
    (1_000_000, 20_000, 200),
    (1_000_000, 500, 200),
)


def made(scores: int, sessions: int) -> Tracks:
    """Return random sessions of uneven lengths that climb, stand still and fall back."""
    chance = np.random.default_rng(sessions)
    weights = chance.gamma(2, 1, sessions)
    lengths = np.maximum(1, (weights / weights.sum() * scores).astype(np.int64))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    moves = chance.choice([-0.2, 0.0, 0.0, 0.0, 0.05, 0.1], starts[-1])
    values = np.empty(starts[-1])
    for start, end in itertools.pairwise(starts):
        values[start:end] = np.clip(np.cumsum(moves[start:end]), 0, 1)
    return Tracks(tuple(map(str, range(sessions))), ("m",), values[None], starts)


def settings(count: int) -> list[Gate]:
    """Return so many different settings."""
    grid = itertools.product((3, 5, 10, 50, 200), (0.1, 0.3, 0.5, 0.8), (0.01, 0.05), (0.1, 0.15, 0.3, 0.5, 1.0))
    return [Gate(*values) for values in itertools.islice(grid, count)]


def decode() -> tuple[int, float, float]:
    """Read the recorded sessions and fold them; returns lines, seconds to read, seconds to fold."""
    started = time.perf_counter()
    reader = Reader(Wire())
    stream, file = opened(RECORDING)
    with stream, file:
        inputs = [item for lines in split(stream) for item in reader.read(RECORDING.name, lines)]
    read = time.perf_counter()
    seen = Seen()

    async def take(_: int, outputs: Sequence[Output]) -> None:
        seen.take(outputs)

    rules = Rules(tier1_metrics=("task_completion",))
    asyncio.run(replay_inputs(inputs, [Replay(watch=seen.watch)], [rules], take, lambda _: None))
    return len(inputs), read - started, time.perf_counter() - read


def main() -> int:
    """Print the tables; 1 when the bar is missed."""
    print("| scores | sessions | settings | seconds | million steps a second |\n|--:|--:|--:|--:|--:|")
    met = True
    for scores, sessions, count in SIZES:
        tracks, gates = made(scores, sessions), settings(count)
        started = time.perf_counter()
        sweep(tracks, gates)
        took = time.perf_counter() - started
        rate = tracks.traces * count / took / 1e6
        print(f"| {tracks.traces:,} | {sessions:,} | {count} | {took:.2f} | {rate:.0f} |")
        met = met and took <= 10
    lines, read, folded = decode()
    print(f"\nrecorded sessions: {lines:,} lines read in {read:.1f} s, folded in {folded:.1f} s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "linux" else 1024**3)
    print(f"peak memory {memory:.2f} GiB; the bar of 10 s and 2 GiB is {'met' if met and memory < 2 else 'MISSED'}")
    return 0 if met and memory < 2 else 1


if __name__ == "__main__":
    sys.exit(main())
