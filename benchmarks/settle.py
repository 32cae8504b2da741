"""How long settle takes with many sessions at once: from the last record's hand-over to the report in hand.

python benchmarks/settle.py [--sessions 200] [--turns 5] [--broker embedded|kafka] [--json]

A broker, topics and one worker of its own. Every session publishes a trace with its score and waits for the diagnosis
before the next; all sessions at once, so each turn waits behind the others' turns of the same moment.
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from typing import Any

from streams import admin
from streams.broker import apache_kafka, embedded
from streams.client import Gate
from streams.security import connection
from streams.settings import PREFIX, Settings, load

PATIENCE_S = 300.0
WARM_UP = 1


async def measure(settings: Settings, sessions: int, turns: int) -> dict[str, Any]:
    """Return latencies in milliseconds and what went wrong."""
    taken: list[float] = []
    wrong = 0

    async def play(gate: Gate, number: int) -> None:
        nonlocal wrong
        for turn in range(turns + WARM_UP):
            value = round((number % 7 + turn) / 20, 4)
            async with gate.trace(f"session-{number}") as trace:
                trace.score("task_completion", value)
            began = time.perf_counter()
            found = await gate.settle(trace.session_id, timeout=PATIENCE_S)
            if turn >= WARM_UP:
                taken.append((time.perf_counter() - began) * 1000)
            values = [score.value for score in found.report.scores if score.tier == 1] if found.report else []
            wrong += found.turn_id != trace.turn_id or values != [value]

    async with Gate(settings) as gate:
        began = time.perf_counter()
        await asyncio.gather(*(play(gate, number) for number in range(sessions)))
        seconds = time.perf_counter() - began
    cuts = quantiles(taken, n=100)
    return {
        "sessions": sessions,
        "turns": len(taken),
        "wrong": wrong,
        "p50_ms": round(cuts[49], 1),
        "p99_ms": round(cuts[98], 1),
        "max_ms": round(max(taken), 1),
        "turns_per_s": round((turns + WARM_UP) * sessions / seconds, 1),
    }


def main() -> None:
    """Start what is needed, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5, help="of each session, after one that warms up")
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    arguments = parser.parse_args()
    # Topics that were just made have no leaders for a moment, which the client library says once for each.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tgate-settle-")))
        broker = stack.enter_context(embedded() if arguments.broker == "embedded" else apache_kafka(directory))
        # One tier, so that no turn waits for a score that nobody publishes: what is left is the pipeline's own time.
        rules = {"tier1_metrics": "task_completion", "tier2_metrics": "", "circuit_breaker_max_notices": "0"}
        overrides = {"bootstrap_servers": broker.bootstrap, **rules}
        settings = load(overrides=overrides, environ={}).settings
        asyncio.run(admin.create(connection(settings), settings))
        environ = {**os.environ, **{PREFIX + name.upper(): value for name, value in overrides.items()}}
        worker = stack.enter_context(
            subprocess.Popen([sys.executable, "-m", "streams", "worker"], env=environ, stderr=subprocess.DEVNULL)
        )
        stack.callback(worker.terminate)
        found = asyncio.run(measure(settings, arguments.sessions, arguments.turns))
        found |= {
            "broker": broker.name,
            "cpus": os.cpu_count(),
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
        }
    print(json.dumps(found) if arguments.json else "\n".join(f"{name:12} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
