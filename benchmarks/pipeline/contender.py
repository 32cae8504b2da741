"""Who is measured: how each is started, and what tells from outside how far it has come."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from benchmarks.pipeline.contenders.task import INPUTS, OUTPUT_EVERY, Task
from benchmarks.pipeline.records import METRICS, PER_TURN
from streams import admin
from streams.broker import RunningBroker
from streams.security import connection
from streams.settings import PREFIX, Settings, load
from streams.topics import BY_ROLE, TURN_SETTLED


@dataclass(frozen=True)
class Started:
    """What a run of a contender needs: its command, and where its outputs can be counted."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    outputs: str
    per_output: int
    """Input records that one output stands for."""


@dataclass(frozen=True)
class Contender:
    """One of those who are measured."""

    letter: str
    name: str
    module: str | None
    """Under `contenders`; none for our own worker."""

    async def prepare(self, broker: RunningBroker, run: str, partitions: int, directory: Path) -> Started:
        """Make the run's topics and say how to start it; *run* names its group."""
        if self.module is None:
            return await _prepare_ours(broker, run, partitions, directory)
        task = Task(broker.bootstrap, run, partitions, broker.fences, str(directory))
        await _create(broker, [_outputs(task), _changelog(task)])
        command = (sys.executable, "-m", f"benchmarks.pipeline.contenders.{self.module}", task.text())
        return Started(command, dict(os.environ), task.outputs, OUTPUT_EVERY)


CONTENDERS = (
    Contender("a", "raw aiokafka", "raw_aiokafka"),
    Contender("b", "raw confluent-kafka", "raw_confluent"),
    Contender("c", "plain Faust agent", "plain_faust"),
    Contender("d", "quixstreams", "quix"),
    Contender("e", "tgate worker", None),
)
OURS = CONTENDERS[-1]


def settings_of(
    broker: RunningBroker, run: str, partitions: int, directory: Path, inputs: tuple[str, ...] = INPUTS
) -> dict[str, str]:
    """Return the settings of our worker: its own defaults, with topics of the run except for the shared *inputs*.

    Only tier 1 is watched, as only tier-1 scores are in the data: a turn would else wait for others to come.
    """
    counts = ("input_partitions", "log_partitions", "candidate_partitions", "output_partitions")
    return {
        "bootstrap_servers": broker.bootstrap,
        "app_id": run,
        "topic_names": json.dumps({role: f"{run}-{role}" for role in BY_ROLE if role not in inputs}),
        "tier1_metrics": ",".join(METRICS),
        "tier2_metrics": "",
        "state_dir": str(directory),
        "log_level": "ERROR",
        **{name: str(partitions) for name in counts},
    }


def loaded(overrides: Mapping[str, str]) -> Settings:
    """Return the settings without a look at this process's environment."""
    return load(overrides=overrides, environ={}).settings


def worker(overrides: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return command and environment of a worker with these settings."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environ |= {PREFIX + name.upper(): value for name, value in overrides.items()}
    return (sys.executable, "-m", "streams", "worker"), environ


async def _prepare_ours(broker: RunningBroker, run: str, partitions: int, directory: Path) -> Started:
    overrides = settings_of(broker, run, partitions, directory)
    settings = loaded(overrides)
    await admin.create(connection(settings), settings)
    command, environ = worker(overrides)
    return Started(command, environ, settings.topic_names[TURN_SETTLED], PER_TURN)


def _outputs(task: Task) -> NewTopic:
    return NewTopic(task.outputs, task.partitions, 1)


def _changelog(task: Task) -> NewTopic:
    return NewTopic(task.changelog, task.partitions, 1, topic_configs={"cleanup.policy": "compact"})


async def _create(broker: RunningBroker, topics: list[NewTopic]) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await client.start()
    try:
        await client.create_topics(topics)
    finally:
        await client.close()
