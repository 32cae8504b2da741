"""What a run's samples say: a rate between two of them, and what that stretch cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

WARM_SHARE = 0.1
"""So much of the records is not measured."""
WARM_S = 10.0
"""Who is slower than that warms up for this long."""


@dataclass(frozen=True)
class Sample:
    """One look. Processor times are seconds since each process began."""

    time_s: float
    committed: int
    outputs: int
    cpu_s: float
    broker_cpu_s: float
    busy_s: float
    """Of the whole machine, all processors together."""
    own_cpu_s: float
    """Of the process that measures."""
    resident: int
    """Bytes."""


@dataclass(frozen=True)
class Run:
    """One run of one contender. Rates and costs are of the stretch that was measured, after the warm-up."""

    records: int
    seconds: float
    cpu_s: float
    broker_cpu_s: float
    others_share: float
    """Of the machine's processors, taken by what does not belong to the measurement."""
    peak_bytes: int
    complete: bool
    """Whether every record was done within the time; if not, the rate is of those that were."""
    repeated: int
    """Outputs put out more often than once, where all records were done."""

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def cpu_per_100k(self) -> float:
        """Processor seconds of the contender for 100,000 records."""
        return self.cpu_s / self.records * 100_000

    @property
    def broker_cpu_per_100k(self) -> float:
        """Processor seconds of the broker for 100,000 records."""
        return self.broker_cpu_s / self.records * 100_000


def done(sample: Sample, per_output: int) -> int:
    """Return how many records are done for good: committed, and their outputs in the topic."""
    return min(sample.committed, sample.outputs * per_output)


def run_of(samples: Sequence[Sample], total: int, per_output: int, processors: int, peak_bytes: int) -> Run:
    """Make a run of the samples of a contender.

    Commits come in steps, so the stretch begins and ends with a sample that has just seen one.

    Raises:
        ValueError: nothing was done after the warm-up.
    """
    steps = [item for before, item in pairwise(samples) if _grew(before, item, per_output)]
    if not steps:
        raise ValueError("nothing was done")
    late_enough = (
        item
        for item in steps
        if done(item, per_output) >= WARM_SHARE * total or item.time_s - steps[0].time_s >= WARM_S
    )
    last = steps[-1]
    warm = next(late_enough, last)
    records, seconds = done(last, per_output) - done(warm, per_output), last.time_s - warm.time_s
    if records <= 0:
        raise ValueError("nothing was done after the warm-up")
    cpu_s, broker_cpu_s = last.cpu_s - warm.cpu_s, last.broker_cpu_s - warm.broker_cpu_s
    measured_s = cpu_s + broker_cpu_s + last.own_cpu_s - warm.own_cpu_s
    complete = done(last, per_output) >= total
    return Run(
        records,
        seconds,
        cpu_s,
        broker_cpu_s,
        max(0.0, (last.busy_s - warm.busy_s - measured_s) / (seconds * processors)),
        max(peak_bytes, *(item.resident for item in samples)),
        complete,
        last.outputs - total // per_output if complete else 0,
    )


def _grew(before: Sample, after: Sample, per_output: int) -> bool:
    return done(after, per_output) > done(before, per_output)


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the append of a turn's last score to that of its notice.

    rate: records a second that were asked for. reached: that were sent.
    broker_times: whether both times are the broker's; only then is the first hop told.
    log_p50_ms, log_p99_ms: from the score to its record in the session log, for every turn.
    """

    rate: float
    reached: float
    notices: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    broker_times: bool
    log_p50_ms: float | None = None
    log_p99_ms: float | None = None
