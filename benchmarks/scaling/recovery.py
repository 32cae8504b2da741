"""How long a worker that starts with an empty memory takes to have so many sessions again, from the changelog."""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import Producer

from benchmarks.micro.made import events, folded
from benchmarks.pipeline.contender import Started, loaded, settings_of, worker
from benchmarks.pipeline.scene import Failed, Scene, running
from benchmarks.pipeline.watching import peak_resident
from benchmarks.scaling.partition import RULES
from benchmarks.scaling.sessions import TRACES_BEFORE, name
from streams import admin, tables
from streams.core.log import PartitionState as Place
from streams.engine import partition_for
from streams.security import connection
from streams.settings import Settings
from streams.topics import SESSION_STATES, TURN_SETTLED
from streams.wire import encode_state

PATIENCE_S = 600.0
LOOK_S = 0.05
WRITTEN_AT_ONCE = 50_000


@dataclass(frozen=True)
class Recovery:
    """From the start of the process to the word that every partition is being read; peak_bytes: of memory."""

    sessions: int
    seconds: float
    peak_bytes: int


async def recovery(scene: Scene, sessions: int) -> dict[str, Any]:
    """Write so many sessions into a changelog, start a worker and take its time.

    Raises:
        Failed: the worker did not get ready.
    """
    run = scene.name("recovery")
    directory = scene.directory / run
    directory.mkdir()
    before = await scene.topics()
    overrides = settings_of(scene.broker, run, scene.partitions, directory, inputs=())
    settings = loaded(overrides)
    await admin.create(connection(settings), settings)
    await asyncio.to_thread(_write, settings, scene.partitions, sessions)
    log = directory / "log"
    began = time.perf_counter()
    try:
        with running(Started(*worker(overrides), settings.topic_names[TURN_SETTLED], 1), log) as process:
            while "ready:" not in log.read_text("utf-8", "replace"):
                if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                    raise Failed(f"the worker did not get ready: {log.read_text('utf-8', 'replace')[-2_000:]}")
                await asyncio.sleep(LOOK_S)
            return asdict(Recovery(sessions, time.perf_counter() - began, peak_resident(process.pid)))
    finally:
        await scene.delete(await scene.topics() - before)


def _write(settings: Settings, partitions: int, sessions: int) -> None:
    """Write the changelog as a worker would have: states, then each partition's position."""
    topic = settings.topic_names[SESSION_STATES]
    # The sessions were active just now: nothing has expired.
    now = time.time_ns() // 1_000_000
    state = folded(events(TRACES_BEFORE))._replace(offset=-1, last_activity=now)
    producer = Producer({"bootstrap.servers": ",".join(settings.bootstrap_servers), "acks": "all", "linger.ms": 20})
    for session in range(sessions):
        session_id = name(session)
        value = encode_state(state._replace(session_id=session_id))
        partition = partition_for(session_id.encode(), partitions)
        producer.produce(topic, value, tables.state_key(session_id), partition=partition)
        if session % WRITTEN_AT_ONCE == 0:
            producer.flush()
    place = encode_state(Place(now=now, rules=RULES))
    for partition in range(partitions):
        producer.produce(topic, place, tables.position_key(partition), partition=partition)
    if left := producer.flush(120):
        raise Failed(f"the broker left {left} states unanswered")
