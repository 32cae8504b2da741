"""Puts records into the input topics at a pace, as agents and evaluators would."""

import time
from collections.abc import Iterable

from benchmarks.pipeline.loading import Loader
from benchmarks.pipeline.records import Made

STEP_S = 0.005


def pace(loader: Loader, records: Iterable[Made], rate: float) -> float:
    """Send records at *rate* a second, each no earlier than its time; returns the seconds it took.

    A pace that cannot be held shows in that time: it is then longer than the records over the rate.
    """
    began = time.perf_counter()
    for number, record in enumerate(records):
        due = began + number / rate
        while (left := due - time.perf_counter()) > 0:
            loader.serve(min(left, STEP_S))
        loader.send(record, time.time_ns() // 1_000_000)
    loader.finish()
    return time.perf_counter() - began
