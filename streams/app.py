"""The data flow on one screen: which agent reads what, which table it keeps, and what runs beside them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust
from faust.types import TP

from streams import admin, tables
from streams.agents.breaker import BreakerStage
from streams.agents.gaps import GapJournal
from streams.agents.ingest import Ingest
from streams.agents.metering import Meter
from streams.agents.outbox import Outbox
from streams.agents.owner import Owner
from streams.agents.session import SessionStage
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


def build(settings: Settings, ready: Ready) -> faust.App:
    """Return the Faust app: ingest, session and breaker agents, and the owner's ticks."""
    topics = named(settings.topic_names)
    wire = Wire.of(settings)
    publisher = Publisher(ready.connection, idempotent=ready.abilities.fences, max_record=admin.MAX_DEAD_LETTER_BYTES)
    offsets = Offsets(ready.connection, lists_ends=ready.abilities.fences)
    outbox = Outbox(wire, topics, ready.counts)
    metrics = Metrics()
    ingest_meter, session_meter, breaker_meter = (Meter(stage, metrics) for stage in STAGES)
    ingest = Ingest(publisher, outbox, wire, offsets, topics, ready.counts[SESSION_LOG], ingest_meter)
    session = SessionStage(publisher, outbox, wire, topics[SESSION_LOG].name, session_meter)
    breaker = BreakerStage(publisher, outbox, wire, breaker_meter)
    inputs = tuple(
        TP(topics[role].name, partition)
        for role in (TRACE_INGESTED, EVAL_SCORES)
        for partition in range(ready.counts[role])
    )
    gaps = GapJournal(publisher, outbox, metrics)
    owner = Owner(settings, session.folds, inputs, publisher, outbox, wire, offsets, metrics)
    own_log = Reading(contiguous=True, max_records=settings.batch_max_records)
    any_order = Reading(by_time=True, max_records=settings.batch_max_records)
    directory = settings.state_dir if settings.store == "rocksdb" else None

    def table(name: str, changelog: str, stage: SessionStage | BreakerStage) -> Table:
        return Table(name, topics[changelog].name, stage.on_restored, stage.on_closed, directory)

    stages = [
        Stage(
            "ingest",
            (topics[TRACE_INGESTED].name, topics[EVAL_SCORES].name),
            ingest_meter.measured(ingest.handle),
            any_order,
        ),
        Stage(
            "session",
            (topics[SESSION_LOG].name,),
            session_meter.measured(session.handle),
            own_log,
            table=table(tables.SESSIONS, SESSION_STATES, session),
        ),
        Stage(
            "breaker",
            (topics[NOTICE_CANDIDATES].name,),
            breaker_meter.measured(breaker.handle),
            own_log,
            table=table(tables.BREAKERS, BREAKER_STATES, breaker),
        ),
    ]
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
    # Offsets of its own: it asks from a loop of its own, which nothing in this one can hold up.
    watching = Offsets(ready.connection, lists_ends=ready.abilities.fences)
    app.add_dependency(Health(settings, app, stages, watching, metrics))
    app.task(gaps.run)
    app.task(owner.run)

    async def stop(*_: object, **__: object) -> None:
        await publisher.stop()
        await offsets.stop()

    app.on_before_shutdown.connect(stop, weak=False)
    return app


def __getattr__(name: str) -> Any:
    """Make `app` when Faust asks for it: `faust -A streams worker` reads the settings as tgate does."""
    if name != "app":
        raise AttributeError(name)
    settings = load().settings
    return build(settings, asyncio.run(prepare(settings)))
