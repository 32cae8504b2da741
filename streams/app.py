"""The data flow on one screen: which agent reads what, which table it keeps, and what runs beside them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.types import TP

from streams import admin, tables
from streams.agents.breaker import BreakerStage
from streams.agents.gaps import GapJournal
from streams.agents.ingest import Ingest
from streams.agents.metering import Meter
from streams.agents.outbox import Outbox
from streams.agents.owner import Owner
from streams.agents.session import SessionStage
from streams.core.log import LogFold
from streams.engine import (
    Abilities,
    Connection,
    Offsets,
    Publisher,
    Reading,
    Stage,
    Table,
    Tuning,
    abilities,
    faust_app,
)
from streams.engine.tuning import DEVELOPMENT
from streams.errors import TgateError
from streams.health import Health
from streams.metrics import STAGES, Metrics
from streams.security import connection
from streams.settings import Settings, load
from streams.topics import (
    BREAKER_STATES,
    EVAL_SCORES,
    NOTICE_CANDIDATES,
    SESSION_LOG,
    SESSION_STATES,
    TRACE_INGESTED,
    Topic,
    named,
)
from streams.wire import Wire


@dataclass(frozen=True)
class Ready:
    """What the broker answered before anything was started."""

    connection: Connection
    abilities: Abilities
    counts: Mapping[str, int]
    """Topic by default name -> partitions."""


async def prepare(settings: Settings) -> Ready:
    """Ask the broker what it can do and whether the topics are as the stages need them.

    Raises:
        TopicsWrong: they are not; the message says what to do.
        KafkaError: the broker does not answer.
    """
    reach = connection(settings)
    able = await abilities(reach)
    found = await admin.check(reach, settings)
    return Ready(reach, able, {role: item.partitions or 0 for role, item in found.items()})


@dataclass(frozen=True)
class Shared:
    """What every stage of a worker uses."""

    wire: Wire
    topics: Mapping[str, Topic]
    publisher: Publisher
    offsets: Offsets
    outbox: Outbox
    metrics: Metrics


def build(settings: Settings, ready: Ready) -> faust.App:
    """Return the Faust app: ingest, session and breaker agents, and what runs beside them."""
    shared = _shared(settings, ready)
    topics, name = shared.topics, {role: topic.name for role, topic in shared.topics.items()}
    ingest_meter, session_meter, breaker_meter = (Meter(stage, shared.metrics) for stage in STAGES)
    ingest = Ingest(
        shared.publisher, shared.outbox, shared.wire, shared.offsets, topics, ready.counts[SESSION_LOG], ingest_meter
    )
    session = SessionStage(shared.publisher, shared.outbox, shared.wire, name[SESSION_LOG], session_meter)
    breaker = BreakerStage(shared.publisher, shared.outbox, shared.wire, breaker_meter)

    inputs = Reading(by_time=True, max_records=settings.batch_max_records)
    own_log = Reading(contiguous=True, max_records=settings.batch_max_records)
    directory = settings.state_dir if settings.store == "rocksdb" else None
    sessions = Table(tables.SESSIONS, name[SESSION_STATES], session.on_restored, session.on_closed, directory)
    breakers = Table(tables.BREAKERS, name[BREAKER_STATES], breaker.on_restored, breaker.on_closed, directory)
    stages = [
        Stage("ingest", (name[TRACE_INGESTED], name[EVAL_SCORES]), ingest_meter.measured(ingest.handle), inputs),
        Stage("session", (name[SESSION_LOG],), session_meter.measured(session.handle), own_log, table=sessions),
        Stage("breaker", (name[NOTICE_CANDIDATES],), breaker_meter.measured(breaker.handle), own_log, table=breakers),
    ]
    return _app(settings, ready, shared, stages, session.folds)


def _shared(settings: Settings, ready: Ready) -> Shared:
    wire, topics = Wire.of(settings), named(settings.topic_names)
    return Shared(
        wire=wire,
        topics=topics,
        publisher=Publisher(
            ready.connection, idempotent=ready.abilities.fences, max_record=admin.MAX_DEAD_LETTER_BYTES
        ),
        offsets=Offsets(ready.connection, lists_ends=ready.abilities.fences),
        outbox=Outbox(wire, topics, ready.counts),
        metrics=Metrics(),
    )


def _app(
    settings: Settings, ready: Ready, shared: Shared, stages: Sequence[Stage], folds: Mapping[int, LogFold]
) -> faust.App:
    """Return the app of the stages, with the owner's ticks, the gap journal and the health watch beside them."""
    gaps = GapJournal(shared.publisher, shared.outbox, shared.metrics)
    app = faust_app(
        settings.app_id,
        ready.connection,
        stages=stages,
        abilities=ready.abilities,
        datadir=Path(settings.state_dir) / "faust",
        tuning=Tuning(session_timeout_s=settings.session_timeout_s) if ready.abilities.fences else DEVELOPMENT,
        max_record=settings.max_record_bytes,
        on_gap=gaps.note,
    )
    inputs = tuple(
        TP(shared.topics[role].name, partition)
        for role in (TRACE_INGESTED, EVAL_SCORES)
        for partition in range(ready.counts[role])
    )
    owner = Owner(settings, folds, inputs, shared.publisher, shared.outbox, shared.wire, shared.offsets, shared.metrics)
    # Offsets of its own: it asks from a loop of its own, which nothing in this one can hold up.
    watching = Offsets(ready.connection, lists_ends=ready.abilities.fences)
    app.add_dependency(Health(settings, app, list(stages), watching, shared.metrics))
    app.task(gaps.run)
    app.task(owner.run)

    async def stop(*_: object, **__: object) -> None:
        await shared.publisher.stop()
        await shared.offsets.stop()

    app.on_before_shutdown.connect(stop, weak=False)
    return app


def __getattr__(name: str) -> Any:
    """Make `app` when Faust asks for it: `faust -A streams worker` reads the settings as tgate does."""
    if name != "app":
        raise AttributeError(name)
    try:
        settings = load().settings
        return build(settings, asyncio.run(prepare(settings)))
    except (KafkaError, TgateError) as error:
        raise SystemExit(
            f"faust -A streams: {error or type(error).__name__}; it asks the broker before it starts"
        ) from None
