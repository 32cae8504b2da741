"""Reads what the stages published: from the start or a time to the present end or on, each record once."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from streams import admin
from streams.core.model import EvalCase, JournalEntry, NeedsHuman, Notice, Report, TurnSettled
from streams.engine import Connection, abilities, partition_for
from streams.errors import BrokerUnavailable, InvalidRecord, TopicsWrong
from streams.security import connection, unseen
from streams.settings import Settings
from streams.topics import EVAL_CASES, JOURNAL, NEEDS_HUMAN, NOTICES, TURN_REPORTS, TURN_SETTLED
from streams.wire import Wire

POLL_MS: Final = 100
SILENCE_S: Final = 30.0
"""How long a broker may give no answer before the end of a topic is known."""
AWAY_S: Final = 5.0
"""Without an answer for this long, a broker that is being followed counts as away."""
REMEMBERED: Final = 100_000
"""Ids kept to tell repeats; a repeat comes soon after the record it repeats, or not at all."""

R = TypeVar("R")


@dataclass(frozen=True)
class Kind(Generic[R]):
    """One of the topics that others read: what it holds, what makes a record the same, and its time."""

    role: str
    made: type[R]
    identity: Callable[[R], Hashable]
    time: Callable[[R], int]


NOTICE: Final = Kind(NOTICES, Notice, lambda it: it.notice_id, lambda it: it.time)
HUMAN: Final = Kind(NEEDS_HUMAN, NeedsHuman, lambda it: it.needs_human_id, lambda it: it.time)
ENTRY: Final = Kind(JOURNAL, JournalEntry, lambda it: it.journal_id, lambda it: it.time)
SETTLED: Final = Kind(TURN_SETTLED, TurnSettled, lambda it: it.settled_id, lambda it: it.time)
REPORT: Final = Kind(TURN_REPORTS, Report, lambda it: (it.session_id, it.lane, it.turn_id), lambda it: it.decided_at)
CASE: Final = Kind(EVAL_CASES, EvalCase, lambda it: it.case_id, lambda it: it.time)


@dataclass(frozen=True)
class Place:
    """A topic on a broker, or those of its partitions that matter."""

    connection: Connection
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class Page:
    """Records in the order of their times, and whether the end as it was at the start has been reached.

    away: the broker does not answer at present; a page without records says so when that changes, where a topic is
        followed.
    """

    records: tuple[ConsumerRecord, ...]
    caught_up: bool
    away: bool = False


@dataclass(frozen=True)
class Outputs(Generic[R]):
    """A page of records as values: those not seen before, and a sentence about each that cannot be read."""

    values: tuple[R, ...]
    unreadable: tuple[str, ...]
    caught_up: bool
    away: bool = False


async def locate(settings: Settings, *roles: str, key: bytes | None = None) -> tuple[Place, ...]:
    """Find topics on the broker; with *key*, only the partition that holds it.

    Raises:
        TopicsWrong: a topic does not exist.
        KafkaError: no broker answers.
    """
    reach = connection(settings)
    found = await admin.find(reach, settings)
    places = []
    for role in roles:
        count = found[role].partitions
        if not count:
            raise TopicsWrong(
                f"topic {found[role].topic.name} does not exist at {reach.bootstrap}{unseen(settings)}; "
                "`tgate topics create` makes it"
            )
        numbers = range(count) if key is None else (partition_for(key, count),)
        places.append(Place(reach, found[role].topic.name, tuple(numbers)))
    return tuple(places)


async def outputs(
    place: Place,
    kind: Kind[R],
    wire: Wire,
    *,
    since_ms: int | None = None,
    start: Mapping[int, int] | None = None,
    follow: bool = False,
) -> AsyncGenerator[Outputs[R], None]:
    """Read a topic as values, repeats left out.

    since_ms: leave out what is older by its own time.
    start: partition -> offset to begin at, instead of a time.
    follow: go on after the end, until cancelled.

    Raises:
        BrokerUnavailable: the broker fell silent before the end was reached.
    """
    seen: dict[Hashable, None] = {}
    async with aclosing(pages(place, since_ms=since_ms, start=start, follow=follow)) as read:
        async for page in read:
            values: list[R] = []
            unreadable: list[str] = []
            for record in page.records:
                try:
                    value = wire.read(kind.made, record.value)
                except InvalidRecord as error:
                    unreadable.append(f"{record.topic}-{record.partition} offset {record.offset}: {error}")
                    continue
                if (since_ms is None or kind.time(value) >= since_ms) and _is_new(seen, kind.identity(value)):
                    values.append(value)
            yield Outputs(tuple(values), tuple(unreadable), page.caught_up, page.away)


def _is_new(seen: dict[Hashable, None], identity: Hashable) -> bool:
    if identity in seen:
        return False
    seen[identity] = None
    if len(seen) > REMEMBERED:
        del seen[next(iter(seen))]
    return True


async def pages(
    place: Place, *, since_ms: int | None = None, start: Mapping[int, int] | None = None, follow: bool = False
) -> AsyncGenerator[Page, None]:
    """Read a topic page by page; without *follow* the last page is the one that has caught up."""
    keys = [TopicPartition(place.topic, number) for number in place.partitions]
    consumer = AIOKafkaConsumer(
        **place.connection.options(),
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=POLL_MS,
    )
    try:
        await consumer.start()
        consumer.assign(keys)
        if start is None:
            await _go_to_start(consumer, keys, place.connection, since_ms)
        else:
            for key in keys:
                consumer.seek(key, start[key.partition])
        end, answers = _End(consumer, keys), _Answers(consumer, keys)
        caught_up = away = False
        while not caught_up or follow:
            found = await consumer.getmany(timeout_ms=POLL_MS)
            records = [record for held in found.values() for record in held]
            records.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
            before = (caught_up, away)
            caught_up = caught_up or await end.reached()
            away = follow and answers.silent_s() >= AWAY_S
            if records or (caught_up, away) != before:
                yield Page(tuple(records), caught_up, away)
    finally:
        await consumer.stop()


async def _go_to_start(
    consumer: Any, keys: Collection[TopicPartition], reach: Connection, since_ms: int | None
) -> None:
    # Where transactions are missing, offsets by time cannot be trusted either: read all, and leave out what is older.
    if since_ms is not None and (await abilities(reach)).fences:
        places = await consumer.offsets_for_times(dict.fromkeys(keys, since_ms))
        ends = await consumer.end_offsets(list(keys))
        for key in keys:
            consumer.seek(key, places[key].offset if places.get(key) else ends[key])
    else:
        for key, offset in (await consumer.beginning_offsets(list(keys))).items():
            consumer.seek(key, offset)


async def latest(place: Place, wanted: Callable[[bytes], bool]) -> dict[bytes, bytes]:
    """Read a changelog to its present end; returns the last value of every wanted key that was not deleted.

    Raises:
        BrokerUnavailable: the broker fell silent before the end was reached.
    """
    found: dict[bytes, bytes] = {}
    async with aclosing(pages(place)) as read:
        async for page in read:
            for record in sorted(page.records, key=lambda record: (record.partition, record.offset)):
                if record.key is None or not wanted(record.key):
                    continue
                if record.value is None:
                    found.pop(record.key, None)
                else:
                    found[record.key] = record.value
    return found


class _Answers:
    """Since when the broker has not answered for one of the partitions; it does so every POLL_MS, with records or without."""

    def __init__(self, consumer: Any, keys: Collection[TopicPartition]) -> None:
        self._consumer = consumer
        self._keys = keys
        self._clock = asyncio.get_running_loop().time
        self._last = 0
        self._since = self._looked = self._clock()

    def silent_s(self) -> float:
        """Return for how long the slowest partition has had no answer, as far as somebody was here to take it."""
        last = min(self._consumer.last_poll_timestamp(key) or 0 for key in self._keys)
        now = self._clock()
        if last != self._last or now - self._looked >= AWAY_S / 2:
            self._last, self._since = last, now
        self._looked = now
        return now - self._since


class _End:
    """Where each partition ended when its first answer came; by the fetches' own word, which every broker gets right."""

    def __init__(self, consumer: Any, keys: Collection[TopicPartition]) -> None:
        self._consumer = consumer
        self._keys = keys
        self._ends: dict[TopicPartition, int] = {}
        self._progress = -1
        self._clock = asyncio.get_running_loop().time
        self._moved_at = self._clock()

    async def reached(self) -> bool:
        """Whether every partition has been read up to its end.

        Raises:
            BrokerUnavailable: nothing has moved for too long.
        """
        positions = {key: await self._consumer.position(key) for key in self._keys}
        for key in self._keys:
            end = self._end_of(key)
            if key not in self._ends and end is not None:
                self._ends[key] = end
        if all(key in self._ends and positions[key] >= self._ends[key] for key in self._keys):
            return True
        progress = sum(positions.values()) + len(self._ends)
        if progress != self._progress:
            self._progress, self._moved_at = progress, self._clock()
        elif self._clock() - self._moved_at > SILENCE_S:
            missing = [f"{key.topic}-{key.partition}" for key in self._keys if key not in self._ends]
            raise BrokerUnavailable(
                f"the broker has not answered for {SILENCE_S:.0f} s while {', '.join(missing) or 'the topic'} was read; "
                "see whether it runs and whether the partitions have leaders"
            )
        return False

    def _end_of(self, key: TopicPartition) -> int | None:
        stable = self._consumer.last_stable_offset(key)
        end: int | None = self._consumer.highwater(key) if stable is None or stable < 0 else stable
        return end
