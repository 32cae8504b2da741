"""Makes a Faust app that hands batches to stages."""

# ruff: noqa: SLF001  (aiokafka and Faust have no public way to do this; both are pinned)

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.app.base import BootStrategy

from streams.engine.assignment import Assignments
from streams.engine.batch import Batch
from streams.engine.connection import Abilities, Connection
from streams.engine.consumer import BatchConsumer
from streams.engine.errors import EngineError, LogLost, Revoked, TopicReplaced
from streams.engine.gaps import Gap, GapCause
from streams.engine.stages import Stage
from streams.engine.state import PartitionState
from streams.engine.topic_ids import TopicIds
from streams.engine.transport import BatchSchema, GateTransport
from streams.engine.tuning import Tuning
from streams.engine.versions import check_versions
from streams.errors import UnreadableState

logger = logging.getLogger(__name__)

_TUNING = Tuning()


class _BootStrategy(BootStrategy):  # type: ignore[misc]
    """Without Faust's producer: outputs and state have producers of their own."""

    enable_kafka_producer = False
    enable_web = False


class GateApp(faust.App):  # type: ignore[misc]
    """A Faust app with our transport.

    fatal: errors that no further try can mend.
    """

    BootStrategy = _BootStrategy

    fatal: tuple[type[Exception], ...] = ()
    before_stop: Callable[[], Awaitable[None]] | None = None
    """Awaited when the app is told to stop, while it still owns its partitions."""

    async def on_first_start(self) -> None:
        """Make Faust's directory with its parents, which Faust does not."""
        self.conf.datadir.mkdir(parents=True, exist_ok=True)
        await super().on_first_start()

    async def on_stop(self) -> None:
        """Finish what goes on beside the batches, then let go of the partitions."""
        if self.before_stop is not None:
            await self.before_stop()
        await super().on_stop()

    def rebuild(self, state: PartitionState) -> None:
        """Bring a partition up again, soon: what goes on beside its batches could not be remembered."""
        if not self.should_stop:
            self.add_future(self.tables.failed(state.source, state))

    def end(self, reason: Exception) -> None:
        """Stop the worker, or the app where there is none; it ends with this error."""
        if self.should_stop:
            return
        self.log.critical("stopping: %s", reason)
        root = self.beacon.root
        # mode's own crash() logs a traceback, which says nothing of a state that cannot be read.
        (root.data if root is not None else self)._crash(reason)
        self._crash(reason)
        for agent in self.agents.values():
            # No children of the app: they would be taken for dead, and started again while the worker stops.
            agent._crash(reason)


OnGap = Callable[[Gap], Awaitable[None]]


async def _ignore_gap(gap: Gap) -> None:
    """The consumer has logged it."""


def faust_app(
    app_id: str,
    connection: Connection,
    *,
    stages: Sequence[Stage],
    abilities: Abilities,
    datadir: Path,
    tuning: Tuning = _TUNING,
    max_record: int = 1_000_000,
    on_gap: OnGap = _ignore_gap,
    fatal: tuple[type[Exception], ...] = (UnreadableState,),
) -> GateApp:
    """Return a Faust app with one agent for each stage.

    app_id: names the consumer group and the transactional ids.
    abilities: of the broker, from `abilities(connection)`.
    datadir: Faust's own; nothing of ours is kept there.
    max_record: largest state record in bytes.
    on_gap: told when wanted records cannot be had; reading goes on after them once it has returned. When it
        raises, or the worker is killed before that, the gap is told again.
    fatal: what a stage raises when no further try can help: the app ends with it.
    """
    check_versions()
    topics = [topic for stage in stages for topic in stage.topics]
    if len(set(topics)) != len(topics):
        raise ValueError("a topic can be read by one stage only")
    if any(stage.table and len(stage.topics) != 1 for stage in stages):
        raise ValueError("a table's partitions are those of one topic")
    app = GateApp(app_id, **_faust_settings(connection, datadir, tuning))
    app.fatal = fatal
    app.conf.TableManager = _assignments(connection, stages, abilities, tuning, max_record)
    app.transport = _transport(app, connection, tuning, _ending_without_log(app, stages, on_gap))
    for stage in stages:
        _add_agent(app, stage)
    return app


def _faust_settings(connection: Connection, datadir: Path, tuning: Tuning) -> dict[str, Any]:
    return {
        "broker": [f"kafka://{host}" for host in connection.bootstrap.split(",")],
        "datadir": str(datadir),
        "autodiscover": False,
        "web_enabled": False,
        "topic_disable_leader": True,
        "topic_allow_declare": False,
        "table_standby_replicas": 0,
        "key_serializer": "raw",
        "value_serializer": "raw",
        "store": "memory://",
        "broker_session_timeout": tuning.session_timeout_s,
        "broker_rebalance_timeout": tuning.rebalance_timeout_s,
        "broker_heartbeat_interval": tuning.heartbeat_s,
        "broker_request_timeout": max(connection.request_timeout_ms / 1000, tuning.session_timeout_s),
        "broker_commit_interval": tuning.commit_interval_s,
        # How soon a worker reads partitions that a topic was given while it runs.
        "consumer_metadata_max_age_ms": round(tuning.metadata_age_s * 1000),
        "consumer_max_fetch_size": tuning.max_fetch_bytes,
        "stream_wait_empty": True,
        "worker_redirect_stdouts": False,
    }


def _assignments(
    connection: Connection,
    stages: Sequence[Stage],
    abilities: Abilities,
    tuning: Tuning,
    max_record: int,
) -> type[Assignments]:
    # Faust makes the manager itself, from a class: what it needs has to be on the class.
    settings = {
        "stages": tuple(stages),
        "connection": connection,
        "topic_ids": TopicIds(connection),
        # Their module is what they log as; without it, that of the metaclass.
        "__module__": Assignments.__module__,
        "fences": abilities.fences,
        "tuning": tuning,
        "max_record": max_record,
    }
    return type("Assignments", (Assignments,), settings)


def _ending_without_log(app: GateApp, stages: Sequence[Stage], on_gap: OnGap) -> OnGap:
    """Return on_gap for all but a log that ends before where its state stands: with that, the app ends.

    Offsets tell the fold what it has applied, so it would ignore whatever is appended there anew.
    """
    logs = {topic for stage in stages if stage.table for topic in stage.topics}

    async def handle(gap: Gap) -> None:
        if gap.cause is GapCause.BEYOND_END and gap.tp.topic in logs:
            error = LogLost(
                f"{gap.tp.topic}-{gap.tp.partition} ends before offset {gap.start}, for which the stored state stands: "
                "it was made again, or lost its end; start over with other topic_names and another app_id"
            )
            app.end(error)
            raise error
        await on_gap(gap)

    return handle


def _transport(app: faust.App, connection: Connection, tuning: Tuning, on_gap: OnGap) -> GateTransport:
    # As above: Faust makes the consumer from its class.
    consumer = type(
        "BatchConsumer",
        (BatchConsumer,),
        {
            "__module__": BatchConsumer.__module__,
            "tuning": tuning,
            "on_gap": staticmethod(on_gap),
            "client_options": connection.options(),
        },
    )
    transport = type("GateTransport", (GateTransport,), {"__module__": GateTransport.__module__, "Consumer": consumer})
    made: GateTransport = transport(app.conf.broker_consumer, app)
    return made


def _add_agent(app: GateApp, stage: Stage) -> None:
    topic = app.topic(*stage.topics, schema=BatchSchema(), internal=False)

    async def agent(stream: Any) -> None:
        async for batch in stream:
            await _handle(app, stage.handle, batch)

    # Faust's log names agents after their functions.
    agent.__module__, agent.__qualname__ = "stage", stage.name
    app.agent(topic, name=stage.name, concurrency=stage.concurrency)(agent)


async def _handle(app: GateApp, handle: Callable[[Batch], Awaitable[None]], batch: Batch) -> None:
    """Call the stage. What it raises must not reach Faust.

    Faust restarts an agent that raised, but the stream's generator lives on in the traceback,
    so the message would be acknowledged when the garbage is collected.
    """
    try:
        await handle(batch)
    except asyncio.CancelledError:
        raise
    except Revoked as error:
        logger.info("%r: %s", batch, error)
    except app.fatal as error:
        await app.consumer.close_lanes()
        app.end(error)
        return
    except TopicReplaced as error:
        logger.warning("%r: %s", batch, error)
        await app.tables.topic_replaced(batch.tp)
    except (KafkaError, EngineError) as error:
        logger.warning("%r failed: %r", batch, error)
    except Exception:
        logger.exception("%r failed", batch)
    state = batch._lane.state
    if state is not None and state.ended is not None:
        await app.tables.failed(batch.tp, state)
