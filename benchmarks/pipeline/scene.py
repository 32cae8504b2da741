"""A broker with the backlog in it, and the runs of contenders on it."""

import asyncio
import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from faust.types import TP

from benchmarks.pipeline.contender import Contender, Started, loaded, settings_of
from benchmarks.pipeline.contenders.task import INPUTS
from benchmarks.pipeline.loading import Loader, load
from benchmarks.pipeline.measure import Run, Sample, done, run_of
from benchmarks.pipeline.records import Workload, records
from benchmarks.pipeline.watching import Watch, peak_resident, pid_of
from streams import admin
from streams.broker import ApacheKafka, EmbeddedBroker
from streams.engine import Offsets
from streams.security import connection

LOOK_S = 0.05
FIRST_S = 90.0
"""How long the first record may take: the start of a process, joining a group, Faust's recovery."""
STOP_S = 60.0


class Failed(Exception):
    """A contender did nothing, or ended by itself; the message holds the end of its log."""


class Scene:
    """The backlog on one broker. Every run reads it in a group of its own."""

    def __init__(
        self, broker: ApacheKafka | EmbeddedBroker, workload: Workload, partitions: int, directory: Path
    ) -> None:
        self.broker = broker
        self.partitions = partitions
        self.directory = directory
        self._workload = workload
        self._names = itertools.count()
        self._settings = loaded(settings_of(broker, "inputs", partitions, directory))
        self._offsets = Offsets(connection(self._settings), lists_ends=broker.fences)

    async def load(self, backlog_rate: float) -> float:
        """Make the input topics and load the backlog; returns the seconds that took."""
        await admin.create(connection(self._settings), self._settings, INPUTS)
        began = time.perf_counter()
        loader = Loader(self.broker.bootstrap, idempotent=self.broker.fences)
        await asyncio.to_thread(load, loader, records(self._workload), backlog_rate)
        return time.perf_counter() - began

    async def stop(self) -> None:
        """Close the connection."""
        await self._offsets.stop()

    def name(self, what: str) -> str:
        """Return a name that no other run has."""
        return f"{what}-{next(self._names)}"

    async def run(self, contender: Contender, limit_s: float, workers: int = 1) -> Run:
        """Have a contender consume the backlog, for *limit_s* after its first record at most.

        Raises:
            Failed: it did nothing, or ended.
        """
        name = self.name(contender.letter)
        directory = self.directory / name
        directory.mkdir()
        before = await self.topics()
        started = await contender.prepare(self.broker, name, self.partitions, directory)
        total = self._workload.records
        try:
            with running(started, directory / "log", workers) as process:
                samples = await self._follow(name, started, process, limit_s)
                peak = peak_resident(process.pid)
            return run_of(samples, total, started.per_output, os.cpu_count() or 1, peak)
        except ValueError as error:
            raise Failed(f"{contender.name}: {error}\n{_tail(directory / 'log')}") from error
        finally:
            await self.delete(await self.topics() - before)

    async def _follow(self, group: str, started: Started, process: psutil.Popen, limit_s: float) -> list[Sample]:
        """Look again and again until all is done or the time is over.

        Raises:
            ValueError: the process ended by itself.
        """
        inputs = [TP(topic, number) for topic in INPUTS for number in range(self.partitions)]
        outputs = [TP(started.outputs, number) for number in range(self.partitions)]
        watch = Watch(self._offsets, group, inputs, outputs, process, pid_of(self.broker))
        samples: list[Sample] = []
        deadline = time.perf_counter() + FIRST_S
        first = False
        while time.perf_counter() < deadline and process.poll() is None:
            await asyncio.sleep(LOOK_S)
            try:
                samples.append(await watch.look())
            except KafkaError:
                continue
            found = done(samples[-1], started.per_output)
            if found and not first:
                first, deadline = True, time.perf_counter() + limit_s
            if found >= self._workload.records:
                break
        if process.poll() is not None:
            raise ValueError(f"it ended with code {process.returncode}")
        return samples

    async def reach(self, tps: list[TP], count: int, patience_s: float) -> None:
        """Wait until partitions hold so many records together.

        Raises:
            Failed: they do not within *patience_s*.
        """
        deadline = time.monotonic() + patience_s
        while (found := await self.count(tps)) < count:
            if time.monotonic() > deadline:
                raise Failed(f"{tps[0].topic} holds {found} of {count} records after {patience_s:g} s")
            await asyncio.sleep(LOOK_S)

    async def count(self, tps: list[TP]) -> int:
        """Return how many records partitions hold together."""
        return sum((await self._offsets.end_offsets(tps)).values())

    async def topics(self) -> set[str]:
        """Return the names of all topics."""
        client = AIOKafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        await client.start()
        try:
            return set(await client.list_topics())
        finally:
            await client.close()

    async def delete(self, names: set[str]) -> None:
        """Delete topics, so that one run's records do not slow down the next."""
        client = AIOKafkaAdminClient(bootstrap_servers=self.broker.bootstrap, request_timeout_ms=60_000)
        await client.start()
        try:
            await client.delete_topics(sorted(name for name in names if not name.startswith("__")))
        finally:
            await client.close()


@contextmanager
def running(started: Started, log: Path, workers: int = 1) -> Iterator[psutil.Popen]:
    """Run a contender's process, or several under one shell, while the block lasts."""
    command = started.command
    if workers > 1:
        command = ("/bin/sh", "-c", '"$@" & ' * (workers - 1) + '"$@" & wait', "sh", *command)
    with log.open("wb") as output:
        process = psutil.Popen(
            command,
            env=dict(started.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: psutil.Popen) -> None:
    """Ask the process and its children to end; end them after some patience."""
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for each in family:
        each.terminate()
    _, alive = psutil.wait_procs(family, STOP_S)
    for each in alive:
        each.kill()
    psutil.wait_procs(alive, STOP_S)


def _tail(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-2_000:]
