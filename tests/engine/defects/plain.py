"""Plain Faust as its documentation has it, in a process of its own, made to show one defect.

python -m tests.engine.defects.plain BOOTSTRAP NAME DIRECTORY SCENARIO... prints a line of JSON for
each scenario. Topics are NAME-SCENARIO-in and the table's changelog, NAME-SCENARIO-counts-changelog.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import faust
from aiokafka import AIOKafkaProducer

PARTITIONS = 2
PATIENCE_S = 60.0


class Plain:
    """An app that counts records per key in a table and keeps what it saw."""

    def __init__(self, bootstrap: str, name: str, directory: str) -> None:
        self.bootstrap, self.name = bootstrap, name
        self.seen: list[tuple[int, int]] = []
        self.pause_s = 0.0
        self.on_record: Callable[[Any], None] = lambda _: None
        # Faust makes the directory itself, but none above it.
        Path(directory).mkdir(parents=True, exist_ok=True)
        on_disk = os.environ.get("PLAIN_STORE") == "rocksdb"
        self.app = faust.App(
            name,
            broker=f"kafka://{bootstrap}",
            datadir=directory,
            store="rocksdb://" if on_disk else "memory://",
            web_enabled=False,
            topic_partitions=PARTITIONS,
            topic_disable_leader=True,
            table_standby_replicas=0,
            value_serializer="raw",
            broker_session_timeout=float(os.environ.get("PLAIN_SESSION", "6")),
            broker_heartbeat_interval=0.5,
        )
        options = {"options": {"driver": "rocksdict"}} if on_disk else {}
        self.table = self.app.Table("counts", default=int, partitions=PARTITIONS, **options)
        topic = self.app.topic(f"{name}-in", key_type=bytes, value_type=bytes)

        async def count(stream: Any) -> None:
            async for event in stream.events():
                self.on_record(event)
                self.table[event.key.decode()] += 1
                self.seen.append((event.message.partition, event.message.offset))
                if self.pause_s:
                    await asyncio.sleep(self.pause_s)

        self.app.agent(topic, name="count")(count)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        ready = asyncio.Event()

        async def on_ready() -> None:
            ready.set()

        self.app.on_startup_finished = on_ready
        task = asyncio.ensure_future(self.app.start())
        await asyncio.wait_for(ready.wait(), PATIENCE_S)
        yield
        with contextlib.suppress(TimeoutError):  # Faust's stop hangs at times
            async with asyncio.timeout(PATIENCE_S / 3):
                await self.app.stop()
                await task

    async def saw(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.seen) < count:  # noqa: ASYNC110  (a poll with a generous deadline)
                await asyncio.sleep(0.05)

    async def publish(self, count: int, partition: int = 0) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap)
        await producer.start()
        for number in range(count):
            await producer.send(f"{self.name}-in", b"v", key=b"k%d" % (number % 5), partition=partition)
        await producer.stop()

    def counted(self) -> int:
        return sum(self.table.values())


async def restart(make: Callable[[], Plain]) -> dict[str, int]:
    """Stop, publish, start again; what follows the seek is held up until records have come."""
    first = make()
    await first.publish(100)
    async with first.running():
        await first.saw(100)
    second = make()
    second.pause_s = 0.02
    await second.publish(200)
    seek = second.app.consumer.perform_seek

    async def slow_seek() -> None:
        await seek()
        with suppress(TimeoutError):
            await second.saw(3)

    second.app.consumer.perform_seek = slow_seek
    async with second.running():
        await quiet(second)
    fresh = [offset for _, offset in second.seen]
    return {"lost": 200 - len(set(fresh)), "doubled": len(fresh) - len(set(fresh))}


async def quiet(plain: Plain) -> None:
    """Wait until nothing more comes."""
    before = -1
    while len(plain.seen) != before:
        before = len(plain.seen)
        await asyncio.sleep(2.5)


async def read_offset(make: Callable[[], Plain]) -> dict[str, int]:
    """The client goes back to the start of the partition, as it does after an error of a position."""
    plain = make()
    await plain.publish(5)
    async with plain.running():
        await plain.saw(5)
        thread = plain.app.consumer._thread

        async def back() -> None:
            for tp in thread._consumer.assignment():
                thread._consumer.seek(tp, 0)

        await thread.call_thread(back)
        await asyncio.sleep(1)
    return {"doubled": len(plain.seen) - len(set(plain.seen))}


async def live_set(make: Callable[[], Plain]) -> dict[str, int]:
    """All partitions pause while the client waits for records, and go on a moment later."""
    plain = make()
    producer = AIOKafkaProducer(bootstrap_servers=plain.bootstrap)
    await producer.start()
    sent = 0

    async def send() -> None:
        nonlocal sent
        await producer.send_and_wait(f"{plain.name}-in", b"v", key=b"k", partition=0)
        sent += 1

    async with plain.running():
        consumer = plain.app.consumer
        while sent < 16 and sent == len(plain.seen):
            # The client's wait for records begins.
            await asyncio.sleep(1.2)
            consumer.pause_partitions(consumer.assignment())
            await send()
            await asyncio.sleep(0.3)
            consumer.resume_partitions(consumer.assignment())
            seen = len(plain.seen)
            await send()
            await plain.saw(seen + 1)
            await asyncio.sleep(0.3)
    await producer.stop()
    return {"lost": sent - len(plain.seen)}


async def failing(make: Callable[[], Plain]) -> dict[str, int]:
    """The agent raises at the third record."""
    plain = make()

    def fail(event: Any) -> None:
        if event.message.offset == 2:
            raise RuntimeError("told to fail")

    plain.on_record = fail
    await plain.publish(5)
    async with plain.running():
        await plain.saw(4)
    again = make()
    async with again.running():
        await asyncio.sleep(2)
    return {"lost": 5 - len(set(plain.seen + again.seen))}


async def markers(make: Callable[[], Plain]) -> dict[str, bool]:
    """Start on a changelog that was written in a transaction."""
    plain = make()
    starting = asyncio.ensure_future(plain.app.start())
    try:
        await asyncio.wait_for(asyncio.shield(plain.app.tables.recovery.completed.wait()), 12)
    except TimeoutError:
        done = False
    else:
        done = True
    print(json.dumps({"markers": {"completed": done}}), flush=True)  # noqa: T201
    # Its recovery cannot be stopped either.
    os.kill(os.getpid(), signal.SIGKILL)
    await starting
    return {}


async def killed(make: Callable[[], Plain]) -> dict[str, int]:
    """Die at the fiftieth record."""
    plain = make()

    def die(event: Any) -> None:
        if event.message.offset == 49:
            os.kill(os.getpid(), signal.SIGKILL)

    plain.on_record = die
    await plain.publish(50)
    async with plain.running():
        await plain.saw(50)
    return {}


async def counts(make: Callable[[], Plain]) -> dict[str, int]:
    """Start again and say what was counted."""
    plain = make()
    async with plain.running():
        await quiet(plain)
        return {"counted": plain.counted()}


SCENARIOS = {made.__name__: made for made in (restart, read_offset, live_set, failing, markers, killed, counts)}
TOPICS_OF = {"counts": "killed"}


def main(bootstrap: str, name: str, directory: str, *scenarios: str) -> None:
    for scenario in scenarios:
        work = f"{name}-{TOPICS_OF.get(scenario, scenario)}"
        found = asyncio.run(SCENARIOS[scenario](partial(Plain, bootstrap, work, f"{directory}/{work}")))
        print(json.dumps({scenario: found}), flush=True)  # noqa: T201
    # Faust leaves threads behind that hold the process up.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
