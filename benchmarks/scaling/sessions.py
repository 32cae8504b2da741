"""Cost for each record while so many sessions are alive; a process of its own for each number, for its memory.

python -m benchmarks.scaling.sessions 100000
"""

import asyncio
import gc
import json
import sys
from random import Random
from typing import Any

import psutil

from benchmarks.micro.made import START_MS, bodies, events, folded
from benchmarks.scaling.partition import RULES, Cost, Partition
from streams import tables
from streams.wire import encode_state

TRACES_BEFORE = 12
BATCH_TURNS = 666
"""Of that many different sessions."""
BATCHES = 30
"""Of which the first third is warm-up."""


def name(session: int) -> str:
    """Return a session's id."""
    return f"session-{session:08d}"


async def by_count(sessions: int) -> dict[str, Any]:
    """Restore so many sessions, then fold turns of random ones among them in batches as large as a worker's."""
    partition, chance = Partition(), Random(sessions)
    await partition.restore()
    await partition.handle([partition.record(None, RULES, START_MS)], Cost())
    empty = psutil.Process().memory_info().rss
    state = folded(events(TRACES_BEFORE))._replace(offset=0, last_activity=START_MS)
    for session in range(sessions):
        session_id = name(session)
        partition.kept.values[tables.state_key(session_id)] = encode_state(state._replace(session_id=session_id))
    restore_s = await partition.restore()
    gc.collect()
    memory = psutil.Process().memory_info().rss - empty
    cost = Cost()
    for number in range(BATCHES):
        turn, now = list(bodies(1, TRACES_BEFORE + number)), START_MS + 1_000 * (TRACES_BEFORE + number)
        chosen = chance.sample(range(sessions), BATCH_TURNS)
        batch = [partition.record(name(session), body, now) for session in chosen for body in turn]
        await partition.handle(batch, cost if number >= BATCHES // 3 else Cost())
    kept, size = partition.state_bytes()
    return {
        "sessions": sessions,
        "us_per_record": cost.us_per_record,
        "state_bytes_per_session": size / kept,
        "memory_bytes_per_session": memory / sessions,
        "changelog_bytes_per_record": cost.changelog_bytes / cost.records,
        "restore_cpu_s": restore_s,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(by_count(int(sys.argv[1])))))
