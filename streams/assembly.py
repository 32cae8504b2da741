"""Puts stages together into a Faust app, with the gap journal and the health watch beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streams import admin
from streams.agents.gaps import GapJournal
from streams.agents.outbox import Outbox
from streams.engine import GateApp, Offsets, Publisher, Stage, Tuning, faust_app
from streams.engine.tuning import DEVELOPMENT
from streams.health import Health
from streams.metrics import STAGES, Metrics
from streams.readiness import Ready
from streams.settings import Settings
from streams.topics import Topic, named
from streams.wire import Wire

ROOM_FOR_STATE = 50_000
"""Bytes that a stored state may take beyond the record that it holds."""


@dataclass(frozen=True)
class Shared:
    """What every stage of a worker uses."""

    wire: Wire
    topics: Mapping[str, Topic]
    publisher: Publisher
    offsets: Offsets
    outbox: Outbox
    metrics: Metrics


def shared(settings: Settings, ready: Ready, stages: Sequence[str] = STAGES) -> Shared:
    """Return what the stages of these names use."""
    wire, topics = Wire.of(settings), named(settings.topic_names)
    return Shared(
        wire=wire,
        topics=topics,
        publisher=Publisher(
            ready.connection, idempotent=ready.abilities.fences, max_record=admin.MAX_DEAD_LETTER_BYTES
        ),
        offsets=Offsets(ready.connection, lists_ends=ready.abilities.fences),
        outbox=Outbox(wire, topics, ready.counts),
        metrics=Metrics(stages),
    )


def assemble(
    app_id: str, settings: Settings, ready: Ready, common: Shared, stages: Sequence[Stage], datadir: Path
) -> GateApp:
    """Return the app of the stages.

    app_id: names the consumer group and the transactional ids.
    """
    app = faust_app(
        app_id,
        ready.connection,
        stages=stages,
        abilities=ready.abilities,
        datadir=datadir,
        tuning=Tuning(session_timeout_s=settings.session_timeout_s) if ready.abilities.fences else DEVELOPMENT,
        max_record=settings.own_record_bytes + ROOM_FOR_STATE,
        on_gap=GapJournal(common.publisher, common.outbox, common.metrics).record,
    )
    # Offsets of its own: it asks from a loop of its own, which nothing in this one can hold up.
    watching = Offsets(ready.connection, lists_ends=ready.abilities.fences)
    app.add_dependency(Health(settings, app, list(stages), watching, common.metrics))

    async def stop(*_: object, **__: object) -> None:
        await common.publisher.stop()
        await common.offsets.stop()

    app.on_before_shutdown.connect(stop, weak=False)
    return app
