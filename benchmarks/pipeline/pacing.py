"""Puts records into the input topics at a pace, as agents and evaluators would."""

import time
from collections.abc import Iterable

from benchmarks.pipeline.loading import Loader
from benchmarks.pipeline.records import Made

STEP_S = 0.005
"""What is due is sent together this often: to wait for each record by itself would take a processor of its own."""


def pace(loader: Loader, records: Iterable[Made], rate: float) -> float:
    """Send records at *rate* a second, each no earlier than its time; returns the seconds it took.

    A pace that cannot be held shows in that time: it is then longer than the records over the rate.
    """
    began = time.perf_counter()
    for sent, record in enumerate(records):
        while sent >= rate * (time.perf_counter() - began):
            loader.serve()
            time.sleep(STEP_S)
        loader.send(record, time.time_ns() // 1_000_000)
    loader.finish()
    return time.perf_counter() - began
