"""tgate demo: recorded sessions of real agents through a real broker and worker, their notices as they arrive."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import orjson
from faust.types import TP

from streams import admin, reading, recording
from streams.broker import RunningBroker, apache_kafka, embedded
from streams.cli.demo_show import Story
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import note
from streams.engine import Offsets, Out, Publisher, abilities, partition_for
from streams.errors import WorkerEnded
from streams.recording import Line, Recording
from streams.security import connection
from streams.settings import Settings, load
from streams.topics import EVAL_SCORES, SESSION_LOG, TRACE_INGESTED
from streams.wire import Wire

BREAKER_LIMIT: Final = 250
RUNAWAY: Final = "runaway"
LOOK_S: Final = 0.2
R = TypeVar("R")


@click.command(
    epilog=examples(
        "tgate demo                  about a minute",
        "tgate demo --speed 240      a quarter of that",
        "tgate demo --broker kafka   on Apache Kafka, from a source checkout with Java 17 and Maven",
    )
)
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    default=75.0,
    show_default=True,
    metavar="N",
    help="N times the recorded pace.",
)
@click.option("--broker", type=click.Choice(["embedded", "kafka"]), default="embedded", show_default=True)
@common
@pass_invocation
def command(invocation: Invocation, speed: float, broker: str) -> None:
    """Watch recorded sessions of real agents raise notices.

    240 sessions of five kinds of agent in MiniGrid rooms, each kind a project of its own: an expert, an expert with
    noise, one that derails midway, one that repeats itself, one that acts at random. The score is true progress
    toward the goal. At the end one more project gets more notices than its circuit breaker lets through.
    """
    recorded = recording.load()
    with tempfile.TemporaryDirectory(prefix="tgate-demo-") as folder:
        started = apache_kafka(Path(folder) / "kafka") if broker == "kafka" else embedded()
        with started as running:
            note(("broker", "green"), f": {running.describe()}")
            settings = _settings(invocation, running, Path(folder))
            asyncio.run(admin.create(connection(settings), settings))
            with _worker(settings, Path(folder) / "worker.log") as worker:
                story = asyncio.run(_Demo(settings, worker, recorded).play(speed))
    story.tell()


def _settings(invocation: Invocation, running: RunningBroker, folder: Path) -> Settings:
    """Return the settings of the demo; what the user sets goes first."""
    demo: dict[str, Any] = {
        "bootstrap_servers": running.bootstrap,
        "tier1_metrics": ["task_completion"],
        "tier2_metrics": ["tool_correctness"],
        "circuit_breaker_max_notices": BREAKER_LIMIT,
        "state_dir": str(folder / "state"),
    }
    return load(invocation.config, {**demo, **invocation.overrides}).settings


@contextmanager
def _worker(settings: Settings, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `tgate worker` as anyone would, its log in a file."""
    config = log.with_name("settings.json")
    config.write_bytes(orjson.dumps(settings.model_dump(mode="json", exclude_defaults=True)))
    chosen = [f"{name}={_text(value)}" for name, value in orjson.loads(config.read_bytes()).items()]
    arguments = [argument for setting in chosen for argument in ("--set", setting)]
    with log.open("wb") as file:
        worker = subprocess.Popen([sys.executable, "-m", "streams", "worker", *arguments], stdout=file, stderr=file)  # noqa: S603 - ourselves
    try:
        yield worker
    except WorkerEnded:
        note(log.read_text("utf-8", "replace")[-2000:])
        raise
    finally:
        worker.terminate()
        worker.wait()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


class _Demo:
    """Plays a recording to a worker and follows what comes out."""

    def __init__(self, settings: Settings, worker: subprocess.Popen[bytes], recorded: Recording) -> None:
        self._settings = settings
        self._worker = worker
        self._recorded = recorded
        self._wire = Wire.of(settings)
        self._story = Story(settings)

    async def play(self, speed: float) -> Story:
        reach = connection(self._settings)
        able = await abilities(reach)
        self._publisher = Publisher(reach, idempotent=able.fences)
        self._offsets = Offsets(reach, lists_ends=able.fences)
        followers = [
            asyncio.create_task(each)
            for each in (self._follow_notices(), self._follow_humans(), self._follow_settled())
        ]
        try:
            await self._until_ready()
            self._story.opens(self._recorded, speed)
            await self._scene(self._recorded, speed)
            self._story.changes(RUNAWAY, BREAKER_LIMIT)
            await self._scene(self._recorded.of(["random", "repeater"]).retold(RUNAWAY), None)
        finally:
            for follower in followers:
                follower.cancel()
            await asyncio.gather(*followers, return_exceptions=True)
            await self._publisher.stop()
            await self._offsets.stop()
        return self._story

    async def _scene(self, recorded: Recording, speed: float | None) -> None:
        """Publish a recording at its pace, and wait until each of its turns has settled."""
        self._story.adds(recorded)
        async for lines in _paced(recorded.lines, speed):
            self._story.published(lines)
            await self._publisher.publish([self._out(line) for line in lines])
            self._check_worker()
        while self._story.unsettled:
            await asyncio.sleep(LOOK_S)
            self._check_worker()

    async def _until_ready(self) -> None:
        """Wait for the worker to own the log: it starts every partition with its rules."""
        name = self._settings.topic_names.get(SESSION_LOG, SESSION_LOG)
        logs = [TP(name, number) for number in range(self._settings.log_partitions)]
        while min((await self._offsets.end_offsets(logs)).values()) == 0:
            await asyncio.sleep(LOOK_S)
            self._check_worker()

    def _check_worker(self) -> None:
        if (code := self._worker.poll()) is not None:
            raise WorkerEnded(f"the worker ended with exit code {code}; its last words stand above")

    def _out(self, line: Line) -> Out:
        role = EVAL_SCORES if line.is_score else TRACE_INGESTED
        key = line.session_id.encode()
        partition = partition_for(key, self._settings.input_partitions)
        return Out(self._settings.topic_names.get(role, role), partition, key, orjson.dumps(line.fields))

    async def _follow_notices(self) -> None:
        async for notice in self._follow(reading.NOTICE):
            self._story.notice(notice)

    async def _follow_humans(self) -> None:
        async for call in self._follow(reading.HUMAN):
            self._story.needs_human(call)

    async def _follow_settled(self) -> None:
        async for settled in self._follow(reading.SETTLED):
            self._story.settled(settled)

    async def _follow(self, kind: reading.Kind[R]) -> AsyncIterator[R]:
        (place,) = await reading.locate(self._settings, kind.role)
        async with aclosing(reading.outputs(place, kind, self._wire, follow=True)) as pages:
            async for page in pages:
                for value in page.values:
                    yield value


async def _paced(lines: list[Line], speed: float | None) -> AsyncIterator[list[Line]]:
    """Yield the lines that are due, a few times a second; without a speed, a thousand at a time."""
    if speed is None:
        for start in range(0, len(lines), 1000):
            yield lines[start : start + 1000]
        return
    begun, first, sent = time.monotonic(), lines[0].recorded_at, 0
    while sent < len(lines):
        until = first + (time.monotonic() - begun) * 1000 * speed
        due = sent
        while due < len(lines) and lines[due].recorded_at <= until:
            due += 1
        if due > sent:
            yield lines[sent:due]
        sent = due
        await asyncio.sleep(LOOK_S)
