"""Topics with other partition counts: what the session stage knows is carried over, and detection goes on there.

State is kept by partition, so counts cannot change in place. The new session log begins with the rules in force and
with every session as it stands: the fold of the new log from its start is where the fold of the old one ended.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from faust.types import TP

from streams import admin, reading, tables
from streams.admin import Found
from streams.core.candidates import CandidatePartitionState
from streams.core.log import LogFold, LogRecord, PartitionState
from streams.core.rules import Rules
from streams.core.state import SessionState
from streams.engine import Connection, Offsets, Out, Publisher, TopicIds, abilities, partition_for
from streams.errors import BadSettings, TopicsWrong
from streams.replay.targets import prefixed
from streams.security import connection
from streams.settings import Settings
from streams.topics import (
    BREAKER_STATES,
    BY_ROLE,
    EVAL_SCORES,
    NOTICE_CANDIDATES,
    SESSION_LOG,
    SESSION_STATES,
    TRACE_INGESTED,
    TRACES,
    Partitions,
)
from streams.wire import Wire

BATCH: Final = 500
CATCH_UP: Final = "start a worker with the old settings, let it catch up, stop it with Ctrl-C, and try again"

Tell = Callable[[int], None]
"""Is told now and then how many records have been written."""


@dataclass(frozen=True)
class Moved:
    """What was carried over, and the settings that lead there."""

    settings: Settings
    sessions: int
    traces: int


async def repartition(settings: Settings, prefix: str, tell: Tell) -> Moved:
    """Create the topics whose partition counts the settings change, behind a prefix, and carry over what is known.

    Raises:
        BadSettings: no count changes, or the prefix leads to topics in use.
        TopicsWrong: workers still run, or did not finish; or the new topics hold records already.
        KafkaError: no broker answers.
    """
    reach = connection(settings)
    found = await admin.find(reach, settings)
    moving = _moving(settings, found)
    new = prefixed(settings, prefix, moving)
    fences = (await abilities(reach)).fences
    offsets = Offsets(reach, lists_ends=fences)
    publisher = Publisher(reach, idempotent=fences, max_record=settings.max_record_bytes + 100_000)
    try:
        await _refuse_running(reach, settings)
        if NOTICE_CANDIDATES in moving:
            await _positions(settings, found, offsets, NOTICE_CANDIDATES, BREAKER_STATES, CandidatePartitionState)
        positions: Mapping[int, PartitionState] = {}
        if SESSION_LOG in moving:
            positions = await _positions(settings, found, offsets, SESSION_LOG, SESSION_STATES, PartitionState)
            await _refuse_uncommitted(reach, settings, offsets, positions)
        await _create(reach, new, moving, offsets)
        if SESSION_LOG not in moving:
            return Moved(new, 0, 0)
        traces = await _copy_traces(settings, new, publisher, tell)
        sessions = await _carry(settings, new, publisher, positions, found[SESSION_STATES].partitions or 0)
        return Moved(new, sessions, traces)
    finally:
        await publisher.stop()
        await offsets.stop()


def _moving(settings: Settings, found: Mapping[str, Found]) -> set[str]:
    """Return the roles of the topics whose counts change; what counts is the count that state was stored under."""
    if missing := [role for role in (SESSION_LOG, SESSION_STATES, BREAKER_STATES) if found[role].partitions is None]:
        raise TopicsWrong(f"there is nothing to carry over: {', '.join(missing)} missing; `tgate topics create`")
    moving: set[str] = set()
    if found[SESSION_STATES].partitions != settings.log_partitions:
        moving |= {role for role, topic in BY_ROLE.items() if topic.partitions is Partitions.LOG}
    if found[BREAKER_STATES].partitions != settings.candidate_partitions:
        moving |= {NOTICE_CANDIDATES, BREAKER_STATES}
    if not moving:
        raise BadSettings(
            f"log_partitions {settings.log_partitions} and candidate_partitions {settings.candidate_partitions} are the "
            "counts that state is stored under; say other ones with -s log_partitions=N"
        )
    return moving


async def _refuse_running(reach: Connection, settings: Settings) -> None:
    client = AIOKafkaAdminClient(**reach.options())
    await client.start()
    try:
        answers = await client.describe_consumer_groups([settings.app_id])
    except KafkaError:
        return  # a broker that tells nothing of groups; positions are compared all the same
    finally:
        await client.close()
    members = sum(len(group[5]) for answer in answers for group in answer.groups)
    if members:
        raise TopicsWrong(f"{members} workers of {settings.app_id} still run: stop them all first, and try again")


async def _positions(
    settings: Settings, found: Mapping[str, Found], offsets: Offsets, log: str, table: str, made: type[Any]
) -> dict[int, Any]:
    """Return where the fold of each partition of a log stands, all at its end."""
    (place,) = await reading.locate(settings, table)
    stored = await reading.latest(place, lambda key: key.startswith(b"p/"))
    positions = {int(key[2:]): tables.decode_state(made, value) for key, value in stored.items()}
    name = found[log].topic.name
    ends = await offsets.end_offsets([TP(name, number) for number in range(found[log].partitions or 0)])
    behind = [
        str(tp.partition)
        for tp, end in ends.items()
        if end > (positions[tp.partition].position if tp.partition in positions else 0)
    ]
    if behind:
        raise TopicsWrong(
            f"{name} holds records that no worker has folded, in partitions {', '.join(behind)}: {CATCH_UP}"
        )
    return positions


async def _refuse_uncommitted(
    reach: Connection, settings: Settings, offsets: Offsets, positions: Mapping[int, PartitionState]
) -> None:
    """Refuse while ingest would read again what the old log holds: the new log could not tell that it is a repeat."""
    names = [settings.topic_names.get(role, role) for role in (TRACE_INGESTED, EVAL_SCORES)]
    applied: dict[TP, dict[str, int]] = {}
    for state in positions.values():
        for (topic, topic_id, partition), offset in state.sources.items():
            if topic in names:
                held = applied.setdefault(TP(topic, partition), {})
                held[topic_id] = max(offset, held.get(topic_id, -1))
    committed = await offsets.committed(settings.app_id, list(applied))
    ids = TopicIds(reach)
    try:
        for tp, by_id in applied.items():
            last = by_id.get(await ids.topic_id(tp), -1)
            if last >= (committed[tp] or 0):
                raise TopicsWrong(f"the workers did not finish with {tp.topic}-{tp.partition}: {CATCH_UP}")
    finally:
        await ids.stop()


async def _create(reach: Connection, new: Settings, moving: Collection[str], offsets: Offsets) -> None:
    """Create the new topics; they must be empty."""
    refused = await admin.create(reach, new, moving)
    if said := [f"{name}: {answer}" for name, answer in refused.items() if answer.startswith("refused")]:
        raise TopicsWrong(f"topics cannot be created: {', '.join(said)}")
    found = await admin.find(reach, new)
    tps = [TP(found[role].topic.name, number) for role in moving for number in range(found[role].partitions or 0)]
    ends = await offsets.end_offsets(tps)
    if used := sorted({tp.topic for tp, end in ends.items() if end > 0}):
        raise TopicsWrong(f"{', '.join(used)} hold records already: choose another prefix")


async def _copy_traces(settings: Settings, new: Settings, publisher: Publisher, tell: Tell) -> int:
    """Copy whole traces, which evaluators read, to their sessions' new partitions."""
    (place,) = await reading.locate(settings, TRACES)
    name, count = new.topic_names[TRACES], new.log_partitions
    copied = 0
    async with aclosing(reading.pages(place)) as pages:
        async for page in pages:
            outs = [
                Out(name, partition_for(record.key, count), record.key, record.value, timestamp_ms=record.timestamp)
                for record in sorted(page.records, key=lambda record: (record.partition, record.offset))
                if record.key is not None
            ]
            for at in range(0, len(outs), BATCH):
                await publisher.publish(outs[at : at + BATCH])
            copied += len(outs)
            tell(copied)
    return copied


async def _carry(
    settings: Settings, new: Settings, publisher: Publisher, positions: Mapping[int, PartitionState], old_count: int
) -> int:
    """Begin every partition of the new log with the rules in force, then with its sessions; returns how many."""
    in_force = [state for state in positions.values() if state.rules is not None]
    if not in_force:
        return 0
    rules = max(in_force, key=lambda state: state.now).rules
    assert rules is not None
    (place,) = await reading.locate(settings, SESSION_STATES)
    stored = await reading.latest(place, lambda key: key.startswith(tables.STATE_PREFIX))
    sessions = sorted(_sessions(settings, stored, positions, old_count), key=lambda item: item.last_activity)
    name, count, wire = new.topic_names[SESSION_LOG], new.log_partitions, Wire.of(settings)

    def out(body: Rules | SessionState, key: bytes | None, partition: int) -> Out:
        session_id = body.session_id if isinstance(body, SessionState) else None
        return Out(name, partition, key, wire.write_internal(LogRecord(-1, 0, body, session_id)))

    outs = [out(rules, None, partition) for partition in range(count)]
    for session in sessions:
        key = session.session_id.encode("utf-8", "surrogatepass")
        outs.append(out(session, key, partition_for(key, count)))
    for at in range(0, len(outs), BATCH):
        await publisher.publish(outs[at : at + BATCH])
    return len(sessions)


def _sessions(
    settings: Settings, stored: Mapping[bytes, bytes], positions: Mapping[int, PartitionState], old_count: int
) -> Iterator[SessionState]:
    """Return every session as the fold of its old partition would find it now; those expired are left out."""

    def load(session_id: str) -> SessionState | None:
        value = stored.get(tables.state_key(session_id))
        return None if value is None else tables.decode_state(SessionState, value)

    topic = settings.topic_names.get(SESSION_LOG, SESSION_LOG)
    folds = {number: LogFold(number, state, load, topic) for number, state in positions.items()}
    for key in stored:
        name = key.removeprefix(tables.STATE_PREFIX)
        state = folds[partition_for(name, old_count)].get(name.decode("utf-8", "surrogatepass"))
        if state is not None:
            yield state
