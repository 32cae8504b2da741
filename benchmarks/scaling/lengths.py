"""Cost for each record while sessions grow from their first trace to their ten thousandth."""

from dataclasses import asdict
from typing import Any

from benchmarks.micro.made import START_MS, bodies
from benchmarks.scaling.partition import RULES, Cost, Partition

SESSIONS = 40
STOPS = (10, 100, 1_000, 10_000)


async def by_length(longest: int) -> list[dict[str, Any]]:
    """Fold sessions side by side, a turn of each in every batch, and say what the traces up to each stop cost."""
    partition, found, first = Partition(), [], 0
    await partition.restore()
    await partition.handle([partition.record(None, RULES, START_MS)], Cost())
    for stop in [stop for stop in STOPS if stop <= longest]:
        cost = Cost()
        for number in range(first, stop):
            turn = list(bodies(1, number))
            now = START_MS + 1_000 * number
            batch = [partition.record(f"session-{session}", body, now) for session in range(SESSIONS) for body in turn]
            await partition.handle(batch, cost)
        sessions, size = partition.state_bytes()
        found.append(
            {
                "from_trace": first + 1,
                "to_trace": stop,
                "us_per_record": cost.us_per_record,
                "state_bytes_per_session": size / sessions,
                "changelog_bytes_per_record": cost.changelog_bytes / cost.records,
                **asdict(cost),
            }
        )
        first = stop
    return found
