"""One worker, then two, on the same backlog; and what more would do, by calculation."""

import os
from typing import Any

from benchmarks.pipeline.contender import OURS
from benchmarks.pipeline.measure import Run
from benchmarks.pipeline.scene import Scene

COUNTS = (1, 2)
CALCULATED = (4, 8)


async def by_workers(scene: Scene, limit_s: float) -> list[dict[str, Any]]:
    """Measure one worker and two on this machine, then say what larger ones should reach.

    The calculation: a worker is bound by its one processor, so that n of them on processors of their own do n times
    what one worker's processor time allows, until there are more workers than partitions. Two workers measured here
    share the machine's processors with the broker and with what looks on.
    """
    runs = {count: await scene.run(OURS, limit_s, count) for count in COUNTS}
    found = [_measured(count, run) for count, run in runs.items()]
    # Of two workers: what sharing the partitions out costs is then part of it.
    alone = 100_000 / runs[COUNTS[-1]].cpu_per_100k
    return found + [
        {
            "workers": count,
            "measured": False,
            "records_per_s": alone * min(count, scene.partitions),
            "cpu_s_per_100k": runs[COUNTS[-1]].cpu_per_100k,
            "broker_cpu_s_per_100k": runs[COUNTS[-1]].broker_cpu_per_100k,
        }
        for count in CALCULATED
    ]


def _measured(count: int, run: Run) -> dict[str, Any]:
    return {
        "workers": count,
        "measured": True,
        "records_per_s": run.rate,
        "cpu_s_per_100k": run.cpu_per_100k,
        "broker_cpu_s_per_100k": run.broker_cpu_per_100k,
        "processors": os.cpu_count(),
        "others_share": run.others_share,
    }
