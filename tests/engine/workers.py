"""Topics of the toy fold, its worker processes, and the check that nothing was lost or doubled."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from faust.types import TP

from streams.broker import RunningBroker
from streams.engine import Connection, Offsets, Out, Publisher, partition_for
from streams.engine.changelog import ChangelogWriter, restore, transactional_id
from streams.engine.stores import MemoryStore
from tests.engine.toy import PARTITIONS

ROOT = Path(__file__).resolve().parents[2]
_DEADLINE_S = 120.0


class Process:
    """One worker process and its log."""

    def __init__(self, arguments: list[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", "tests.engine.toy", *arguments],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            )

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        assert self.wait() == 0, self.text()

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        try:
            return self._process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.text()) from None

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._process.wait(_DEADLINE_S)

    def text(self) -> str:
        return self.log.read_text()

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def running(self) -> bool:
        return self._process.poll() is None


class Cluster:
    """The toy's topics on one broker."""

    def __init__(self, broker: RunningBroker, test: str, directory: Path) -> None:
        self.broker = broker
        self.connection = Connection(broker.bootstrap)
        self.name = re.sub(r"\W", "-", f"{test}-{time.time_ns() % 10**9}")
        self.directory = directory
        self._processes: list[Process] = []
        asyncio.run(self._create_topics())

    async def _create_topics(self) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        await admin.start()
        compact = {"cleanup.policy": "compact"}
        await admin.create_topics(
            [
                NewTopic(f"{self.name}-in", PARTITIONS, 1),
                NewTopic(f"{self.name}-out", PARTITIONS, 1),
                NewTopic(f"{self.name}-changelog", PARTITIONS, 1, topic_configs=compact),
            ]
        )
        await admin.close()
        offsets = Offsets(self.connection, lists_ends=self.broker.fences)
        for topic in ("in", "out", "changelog"):
            await offsets.end_offsets(self.tps(topic))
        await offsets.stop()

    @contextmanager
    def worker(self, **environment: str) -> Iterator[Process]:
        log = self.directory / f"worker-{len(self._processes)}.log"
        directory = self.directory / f"data-{environment.pop('TOY_DATA', '0')}"
        process = Process([self.broker.bootstrap, self.name, str(directory)], log, environment)
        self._processes.append(process)
        try:
            yield process
        finally:
            process.kill()

    def fence(self, partition: int) -> None:
        """Open a writer of the changelog, as a worker would that does not know it was replaced."""

        async def open_writer() -> None:
            name = transactional_id(self.name, "counts", partition)
            writer = ChangelogWriter(self.connection, self.tps("changelog")[partition], transactional_id=name)
            await writer.open()
            await writer.close()

        asyncio.run(open_writer())

    def remember(self, partition: int, position: int) -> None:
        """Write a position record, as a worker did before the log lost its end."""

        async def write() -> None:
            writer = ChangelogWriter(self.connection, self.tps("changelog")[partition], transactional_id=None)
            await writer.open()
            await writer.append({b"p/%d" % partition: b"%d" % position})
            await writer.close()

        asyncio.run(write())

    def tps(self, topic: str) -> list[TP]:
        return [TP(f"{self.name}-{topic}", partition) for partition in range(PARTITIONS)]

    def feed(self, count: int, first: int = 0) -> None:
        async def send() -> None:
            publisher = Publisher(self.connection, idempotent=self.broker.fences)
            keys = [b"k%d" % (number % 37) for number in range(first, first + count)]
            await publisher.publish(
                [Out(f"{self.name}-in", partition_for(key, PARTITIONS), key, b"v" * 50) for key in keys]
            )
            await publisher.stop()

        asyncio.run(send())

    def read(self, topic: str) -> list[tuple[int, int, bytes, bytes]]:
        """Return (partition, offset, key, value) of all records."""
        return asyncio.run(read_all(self.connection, self.tps(topic)))

    def count(self, topic: str) -> int:
        async def ask() -> int:
            offsets = Offsets(self.connection, lists_ends=self.broker.fences)
            ends = await offsets.end_offsets(self.tps(topic))
            await offsets.stop()
            return sum(ends.values())

        return asyncio.run(ask())

    def committed(self) -> int:
        async def ask() -> int:
            offsets = Offsets(self.connection, lists_ends=self.broker.fences)
            found = await offsets.committed(self.name, self.tps("in"))
            await offsets.stop()
            return sum(offset or 0 for offset in found.values())

        return asyncio.run(ask())

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, what + "\n" + "\n".join(p.text() for p in self._processes)
            time.sleep(0.1)

    def wait_for_outputs(self, count: int) -> None:
        self.wait_for(lambda: self.count("out") >= count, f"{self.count('out')} of {count} outputs")

    def wait_until_settled(self, count: int) -> None:
        self.wait_for(lambda: self.committed() == count, f"{self.committed()} of {count} committed")

    def state(self) -> dict[bytes, int]:
        """Return the counts that the changelog holds."""

        async def rebuild() -> dict[bytes, int]:
            counts: dict[bytes, int] = {}
            for tp in self.tps("changelog"):
                store = MemoryStore()
                await restore(self.connection, tp, store)
                counts |= {key[2:]: json.loads(value)[0] for key, value in store.items(b"s/")}
            return counts

        return asyncio.run(rebuild())

    def check(self) -> list[bytes]:
        """State equals the fold of the log, outputs as a set are complete; return the outputs."""
        log = self.read("in")
        assert self.state() == Counter(key for _, _, key, _ in log)
        outputs = [value for *_, value in self.read("out")]
        assert set(outputs) == {b"%d:%d" % (partition, offset) for partition, offset, *_ in log}
        return outputs


async def read_all(connection: Connection, tps: list[TP]) -> list[tuple[int, int, bytes, bytes]]:
    offsets = Offsets(connection, lists_ends=False)
    ends = await offsets.end_offsets(tps)
    await offsets.stop()
    consumer = AIOKafkaConsumer(**connection.options(), auto_offset_reset="earliest", fetch_max_wait_ms=100)
    await consumer.start()
    # aiokafka's consumer cannot be stopped before its tasks have begun.
    await asyncio.sleep(0)
    found = []
    try:
        keys = [TopicPartition(*tp) for tp in tps]
        consumer.assign(keys)
        for key in keys:
            consumer.seek(key, 0)
        while any([await consumer.position(key) < ends[TP(*key)] for key in keys]):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += [(r.partition, r.offset, r.key, r.value) for r in records]
    finally:
        await consumer.stop()
    return found
