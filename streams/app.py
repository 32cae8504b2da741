"""The data flow on one screen: which agent reads what, which table it keeps, and what runs beside them."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import faust
from aiokafka.errors import KafkaError

from streams import tables
from streams.agents.breaker import BreakerStage
from streams.agents.ingest import Ingest
from streams.agents.metering import Meter
from streams.agents.owner import Owner
from streams.agents.rivals import Rivals
from streams.agents.session import SessionStage
from streams.assembly import Shared, assemble, shared
from streams.core.log import LogFold
from streams.engine import GateApp, Reading, Stage
from streams.errors import TgateError
from streams.metrics import STAGES
from streams.readiness import Ready, prepare
from streams.settings import Settings, load
from streams.topics import (
    BREAKER_STATES,
    EVAL_SCORES,
    NOTICE_CANDIDATES,
    SESSION_LOG,
    SESSION_STATES,
    TRACE_INGESTED,
)


def build(settings: Settings, ready: Ready) -> faust.App:
    """Return the Faust app: ingest, session and breaker agents, and what runs beside them."""
    common = shared(settings, ready)
    topics, name = common.topics, {role: topic.name for role, topic in common.topics.items()}
    ingest_meter, session_meter, breaker_meter = (Meter(stage, common.metrics) for stage in STAGES)
    ingest = Ingest(
        common.publisher, common.outbox, common.wire, common.offsets, topics, ready.counts[SESSION_LOG], ingest_meter
    )
    session = SessionStage(common.publisher, common.outbox, common.wire, name[SESSION_LOG], session_meter)
    breaker = BreakerStage(common.publisher, common.outbox, common.wire, breaker_meter)

    inputs = Reading(by_time=True, max_records=settings.batch_max_records)
    own_log = Reading(contiguous=True, max_records=settings.batch_max_records, rank=1)
    last = replace(own_log, rank=2)
    directory = settings.state_dir if settings.store == "rocksdb" else None
    sessions = session.table(tables.SESSIONS, name[SESSION_STATES], directory)
    breakers = breaker.table(tables.BREAKERS, name[BREAKER_STATES], directory)
    stages = [
        Stage("ingest", (name[TRACE_INGESTED], name[EVAL_SCORES]), ingest_meter.measured(ingest.handle), inputs),
        Stage("session", (name[SESSION_LOG],), session_meter.measured(session.handle), own_log, table=sessions),
        Stage("breaker", (name[NOTICE_CANDIDATES],), breaker_meter.measured(breaker.handle), last, table=breakers),
    ]
    app = _app(settings, ready, common, stages, session.folds)
    session.rebuild = breaker.rebuild = app.rebuild
    return app


def _app(
    settings: Settings, ready: Ready, common: Shared, stages: Sequence[Stage], folds: Mapping[int, LogFold]
) -> GateApp:
    """Return the app of the stages, with the owner's rules and ticks beside them, and a look at who else does their work."""
    app = assemble(settings.app_id, settings, ready, common, stages, Path(settings.state_dir) / "faust")
    inputs = [common.topics[role].name for role in (TRACE_INGESTED, EVAL_SCORES)]
    owner = Owner(settings, folds, inputs, common.publisher, common.outbox, common.wire, common.offsets, common.metrics)
    rivals = Rivals(
        settings.app_id, [topic for stage in stages for topic in stage.topics], ready.connection, common.offsets
    )
    app.task(owner.run)
    app.task(rivals.run)
    return app


def __getattr__(name: str) -> Any:
    """Make `app` when Faust asks for it: `faust -A streams worker` reads the settings as tgate does."""
    if name != "app":
        raise AttributeError(name)
    try:
        settings = load().settings
        if "--help" in sys.argv:
            # Faust looks at the app before it lists its commands: for that, no broker has to answer.
            return faust.App(settings.app_id)
        return build(settings, asyncio.run(prepare(settings)))
    except (KafkaError, TgateError) as error:
        raise SystemExit(
            f"faust -A streams: {error or type(error).__name__}; it asks the broker before it starts"
        ) from None
