"""How far a contender has come and what it costs, seen from outside in the same way for all."""

import time

import psutil
from faust.types import TP

from benchmarks.pipeline.measure import Sample
from streams.broker import ApacheKafka, EmbeddedBroker
from streams.engine import Offsets


class Watch:
    """Looks at one run: its group's commits, its outputs, its processes, the broker."""

    def __init__(
        self, offsets: Offsets, group: str, inputs: list[TP], outputs: list[TP], process: psutil.Process, broker: int
    ) -> None:
        self._offsets = offsets
        self._group = group
        self._inputs = inputs
        self._outputs = outputs
        self._process = process
        self._broker = psutil.Process(broker)
        self._own = psutil.Process()

    async def look(self) -> Sample:
        """Take one sample.

        Raises:
            KafkaError: the broker does not answer for the moment, or knows no such group yet.
        """
        committed = await self._offsets.committed(self._group, self._inputs)
        ends = await self._offsets.end_offsets(self._outputs)
        cpu_s, resident = _tree(self._process)
        return Sample(
            time.perf_counter(),
            sum(offset or 0 for offset in committed.values()),
            sum(ends.values()),
            cpu_s,
            _cpu(self._broker),
            _busy(),
            _cpu(self._own),
            resident,
        )


def pid_of(broker: ApacheKafka | EmbeddedBroker) -> int:
    """Return the broker's process id."""
    return broker.pid() if isinstance(broker, ApacheKafka) else broker.pid


def peak_resident(pid: int) -> int:
    """Return the most memory in bytes that a living process has held; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:  # noqa: PTH123  (a file of the kernel)
            lines = dict(line.split(":", 1) for line in status)
    except OSError:
        return 0
    return int(lines["VmHWM"].split()[0]) * 1024 if "VmHWM" in lines else 0


def _tree(process: psutil.Process) -> tuple[float, int]:
    cpu_s, resident = 0.0, 0
    for each in (process, *process.children(recursive=True)):
        try:
            cpu_s += _cpu(each)
            resident += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return cpu_s, resident


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _busy() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))
