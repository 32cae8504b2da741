"""How long after a turn's last score its notice is there: at a steady load, on fresh topics.

On Apache Kafka both times are the broker's own append times. The embedded broker has none: there a score's time is the
one at which it was handed to the producer, and a notice's the one at which a consumer that waits for it has got it, so
that the number holds two more hops.
"""

import asyncio
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import psutil
from aiokafka import AIOKafkaConsumer
from faust.types import TP

from benchmarks.pipeline.contender import Started, loaded, settings_of, worker
from benchmarks.pipeline.loading import Loader
from benchmarks.pipeline.measure import Latency
from benchmarks.pipeline.pacing import pace
from benchmarks.pipeline.reading import create_stamped, read_all
from benchmarks.pipeline.records import METRICS, PER_TURN, Workload, records
from benchmarks.pipeline.scene import FIRST_S, Failed, Scene, running
from streams.core.model import Score
from streams.settings import Settings
from streams.topics import EVAL_SCORES, NOTICES, SESSION_LOG, TRACE_INGESTED, TURN_SETTLED, named
from streams.wire import Wire

WARM_S = 10.0
SETTLED_S = 60.0
LOOK_S = 0.2
LINGER_MS = 5.0
FEWEST = 20


async def latency(scene: Scene, workload: Workload, rate: float, seconds: float) -> Latency:
    """Run our worker under a load of *rate* records a second and measure for *seconds*, after a warm-up.

    Raises:
        Failed: turns did not settle, or no notice came.
    """
    name = scene.name("latency")
    directory = scene.directory / name
    directory.mkdir()
    before = await scene.topics()
    overrides = settings_of(scene.broker, name, scene.partitions, directory, inputs=())
    settings = loaded(overrides)
    await create_stamped(settings, (EVAL_SCORES, NOTICES))
    started = Started(*worker(overrides), settings.topic_names[TURN_SETTLED], PER_TURN)
    workload = replace(workload, records=round(rate * (seconds + WARM_S) / PER_TURN) * PER_TURN)
    try:
        with running(started, directory / "log") as process:
            await _ready(process, directory / "log")
            reached, arrivals = await _under_load(scene, settings, workload, rate)
        scores = _closing_times(await read_all(settings, EVAL_SCORES))
        logged: dict[str, float] = {}
        if scene.broker.fences:
            arrivals = _notice_times(await read_all(settings, NOTICES))
            logged = _log_times(await read_all(settings, SESSION_LOG))
    finally:
        await scene.delete(await scene.topics() - before)
    found = _latency(scores, arrivals, rate, reached, broker_times=scene.broker.fences)
    if not logged:
        return found
    cuts = _cuts(scores, logged)
    return replace(found, log_p50_ms=cuts[49], log_p99_ms=cuts[98])


async def _ready(process: psutil.Popen, log: Path) -> None:
    """Wait until every partition is being read."""
    deadline = time.monotonic() + FIRST_S
    while "ready:" not in log.read_text("utf-8", "replace"):  # noqa: ASYNC240  (nothing else runs yet)
        if time.monotonic() > deadline or process.poll() is not None:
            raise Failed(f"the worker did not get ready: {log.read_text('utf-8', 'replace')[-2_000:]}")  # noqa: ASYNC240
        await asyncio.sleep(LOOK_S)


async def _under_load(
    scene: Scene, settings: Settings, workload: Workload, rate: float
) -> tuple[float, dict[str, float]]:
    """Send the records and wait until all turns have settled; returns the rate reached, and when notices arrived."""
    topics = named(settings.topic_names)
    arrivals: dict[str, float] = {}
    listening = None
    if not scene.broker.fences:
        listening = asyncio.ensure_future(_listen(scene.broker.bootstrap, topics[NOTICES].name, arrivals))
    inputs = topics[TRACE_INGESTED].name, topics[EVAL_SCORES].name
    loader = Loader(scene.broker.bootstrap, idempotent=scene.broker.fences, topics=inputs, linger_ms=LINGER_MS)
    made = list(records(workload))
    try:
        took = await asyncio.to_thread(pace, loader, made, rate)
        settled = [TP(topics[TURN_SETTLED].name, number) for number in range(scene.partitions)]
        await scene.reach(settled, workload.turns, SETTLED_S)
    finally:
        if listening is not None:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    return len(made) / took, arrivals


async def _listen(bootstrap: str, topic: str, arrivals: dict[str, float]) -> None:
    """Note when each notice arrives, in milliseconds, until cancelled."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        async for record in consumer:
            arrivals.setdefault(_trace_of(record.value), time.time() * 1000)
    finally:
        await consumer.stop()


def _closing_times(scores: list[tuple[bytes, int]]) -> dict[str, float]:
    """Return trace id -> time of the score that completes its turn."""
    found = ((orjson.loads(value), time_ms) for value, time_ms in scores)
    return {score["trace_id"]: time_ms for score, time_ms in found if score["name"] == METRICS[-1]}


def _notice_times(notices: list[tuple[bytes, int]]) -> dict[str, float]:
    times: dict[str, float] = {}
    for value, time_ms in notices:
        times.setdefault(_trace_of(value), time_ms)
    return times


def _trace_of(notice: bytes) -> str:
    """Return the trace that a notice is about; a turn has one only here."""
    return str(orjson.loads(notice)["scores"][0]["trace_id"])


def _log_times(records: list[tuple[bytes, int]]) -> dict[str, float]:
    """Return trace id -> time at which the score that completes its turn came into the session log."""
    wire, times = Wire(), {}
    for value, time_ms in records:
        body = wire.read_log_record(value, 0, time_ms).body
        if isinstance(body, Score) and body.name == METRICS[-1] and body.trace_id is not None:
            times[body.trace_id] = float(time_ms)
    return times


def _cuts(begun: Mapping[str, float], ended: Mapping[str, float]) -> list[float]:
    """Return the percentiles of what lies between, for what began after the warm-up; the last is the longest.

    Raises:
        Failed: there are too few.
    """
    after = min(begun.values()) + WARM_S * 1000
    taken = [ended[trace] - begun[trace] for trace in ended if begun[trace] >= after]
    if len(taken) < FEWEST:
        raise Failed(
            f"{len(taken)} turns were told of after the warm-up, of {FEWEST} that are needed: measure for longer"
        )
    return [*statistics.quantiles(taken, n=100, method="inclusive"), max(taken)]


def _latency(
    scores: Mapping[str, float], notices: Mapping[str, float], rate: float, reached: float, *, broker_times: bool
) -> Latency:
    cuts = _cuts(scores, notices)
    after = min(scores.values()) + WARM_S * 1000
    count = sum(scores[trace] >= after for trace in notices)
    return Latency(rate, reached, count, cuts[49], cuts[94], cuts[98], cuts[-1], broker_times)
