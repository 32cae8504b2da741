"""Reads how turns landed: one consumer for all sessions of a client, only the partitions that are asked for."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from streams import reading
from streams.client.reach import Reach
from streams.client.settlement import Landing
from streams.client.turns import Turn
from streams.core.model import Lane, Notice, Report, TurnSettled
from streams.engine import Connection, Offsets, partition_for
from streams.errors import InvalidRecord
from streams.reading import NOTICE, REPORT, SETTLED, Kind, Place
from streams.wire import Wire

logger = logging.getLogger(__name__)

KINDS: Final[tuple[Kind[Any], ...]] = (SETTLED, REPORT, NOTICE)
REMEMBERED: Final = 10_000
"""Turns kept, landed or asked for; an older one is read again when it is asked for again."""
SLACK_MS: Final = 600_000
"""How far a record's time may lie before our own clock: machines differ."""
POLL_MS: Final = 50
STRAGGLER_S: Final = 5.0
"""How long the report and notices of a settled turn may take; past that they are not kept any more."""
PAUSE_S: Final = 1.0
START: Final = 0


@dataclass(frozen=True)
class _Wish:
    """Read a session's partitions from a time on; `again`: also what has been read before."""

    since: int
    again: bool

    def joined(self, other: "_Wish | None") -> "_Wish":
        return self if other is None else _Wish(min(self.since, other.since), self.again or other.again)


class Landings:
    """Turn id -> what is known of its end. Everything here belongs to one event loop."""

    def __init__(self, reach: Reach, wire: Wire, on_landed: Callable[[str], None]) -> None:
        self._reach, self._wire, self._on_landed = reach, wire, on_landed
        self._known: OrderedDict[str, tuple[Landing, asyncio.Event]] = OrderedDict()
        self._wishes: dict[TopicPartition, _Wish] = {}
        self._asked: dict[str, _Wish] = {}
        """By session, before the topics are known."""
        self._open: set[TopicPartition] = set()
        self._next: dict[TopicPartition, int] = {}
        self._again_until: dict[TopicPartition, int] = {}
        """Where a partition stood when reading it again began."""
        self._offsets: Offsets | None = None
        self._task: asyncio.Task[None] | None = None
        self.trouble: str | None = None

    @property
    def active(self) -> bool:
        """Whether anything has been watched yet."""
        return self._task is not None

    def watch(self, turn: Turn, *, fresh: bool = False) -> Landing:
        """Take notice of a turn's end, of one that was published long ago too.

        fresh: it is just being published, so nothing of its end can have been read yet.
        """
        known = self._known.get(turn.turn_id)
        if known is None:
            known = self._known[turn.turn_id] = Landing(), asyncio.Event()
            wish = _Wish(max(START, turn.published_at - SLACK_MS), again=not fresh)
            self._asked[turn.session_id] = wish.joined(self._asked.get(turn.session_id))
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="tgate-landings")
        self._known.move_to_end(turn.turn_id)
        return known[0]

    async def wait(self, turn_id: str) -> Landing:
        """Wait until a watched turn has landed."""
        landing, done = self._known[turn_id]
        await done.wait()
        if not landing.complete:
            with suppress(TimeoutError):
                async with asyncio.timeout(STRAGGLER_S):
                    while not landing.complete:
                        done.clear()
                        await done.wait()
            done.set()
        return landing

    async def catch_up(self, timeout_s: float) -> bool:
        """Wait until all that stands in the watched partitions now has been read; returns whether it was in time."""
        # Looked at between polls, which come as often; an event for it would have to be set from five places.
        try:
            async with asyncio.timeout(timeout_s):
                while self._offsets is None or self._asked or self._wishes:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_MS / 1000)
                ends = await self._offsets.end_offsets(list(self._open))
                while any(self._next.get(tp, 0) < end for tp, end in ends.items()):  # noqa: ASYNC110
                    await asyncio.sleep(POLL_MS / 1000)
        except (TimeoutError, KafkaError):
            return False
        return True

    async def close(self) -> None:
        """Stop reading."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=PAUSE_S * 5)

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except Exception as error:  # noqa: BLE001  (whatever it is, the agent's loop only sees a time-out)
                if self.trouble is None:
                    logger.warning("how turns landed cannot be read at present: %s", str(error) or repr(error))
                self.trouble = str(error) or repr(error)
                await asyncio.sleep(PAUSE_S)

    async def _follow(self) -> None:
        places = await reading.locate(self._reach.settings, *(kind.role for kind in KINDS))
        kinds = {place.topic: kind for place, kind in zip(places, KINDS, strict=True)}
        fences = await self._reach.fences()
        consumer = _consumer(self._reach.connection)
        self._offsets = Offsets(self._reach.connection, lists_ends=fences)
        try:
            await consumer.start()
            await self._take_up(consumer, places)
            self.trouble = None
            while True:
                await self._open_asked(consumer, places, by_time=fences)
                found = await consumer.getmany(timeout_ms=POLL_MS)
                if not found:
                    # Nothing is left to read, also where a topic was made anew and will never reach that far.
                    self._again_until.clear()
                for tp, records in found.items():
                    for record in records:
                        self._take(kinds[tp.topic], record)
                    self._next[tp] = records[-1].offset + 1
        finally:
            offsets, self._offsets = self._offsets, None
            await offsets.stop()
            await consumer.stop()

    async def _take_up(self, consumer: Any, places: Sequence[Place]) -> None:
        """Stand where reading had come to; what nobody has asked for is not fetched."""
        tps = [TopicPartition(place.topic, number) for place in places for number in place.partitions]
        consumer.assign(tps)
        consumer.pause(*tps)
        for tp, offset in (await consumer.beginning_offsets(tps)).items():
            consumer.seek(tp, max(offset, self._next.get(tp, offset)))
        consumer.resume(*self._open.intersection(tps))

    async def _open_asked(self, consumer: Any, places: Sequence[Place], *, by_time: bool) -> None:
        """Begin to read what has been asked for since, or read it again."""
        for session_id, asked in self._asked.items():
            key = session_id.encode("utf-8", "surrogatepass")
            for place in places:
                tp = TopicPartition(place.topic, partition_for(key, len(place.partitions)))
                if asked.again or tp not in self._open:
                    self._wishes[tp] = asked.joined(self._wishes.get(tp))
        self._asked.clear()
        # One reading at a time: whoever asks meanwhile shares the next, so that many askers cannot hold it up.
        due = {tp: wish for tp, wish in self._wishes.items() if self._next.get(tp, 0) >= self._again_until.get(tp, 0)}
        if not due:
            return
        for tp, offset in (await _starts(consumer, due, by_time=by_time)).items():
            before = self._next.get(tp)
            if tp not in self._open or before is None or offset < before:
                consumer.seek(tp, offset)
                self._next[tp] = offset
                if before is not None:
                    self._again_until[tp] = before
            self._open.add(tp)
            del self._wishes[tp]
        consumer.resume(*due)

    def _take(self, kind: Kind[Any], record: ConsumerRecord) -> None:
        try:
            value = self._wire.read(kind.made, record.value)
        except InvalidRecord as error:
            logger.warning("left out %s-%d offset %d: %s", record.topic, record.partition, record.offset, error)
            return
        if value.lane is not Lane.TRACE or (known := self._known.get(value.turn_id)) is None:
            return
        landing, done = known
        match value:
            case TurnSettled():
                landing.settled = value
                self._on_landed(value.turn_id)
            case Report():
                landing.report = value
            case Notice():
                landing.notices[value.notice_id] = value
        if landing.settled is not None:
            done.set()


def _consumer(connection: Connection) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **connection.options(),
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=POLL_MS,
    )


async def _starts(consumer: Any, wishes: Mapping[TopicPartition, _Wish], *, by_time: bool) -> dict[TopicPartition, int]:
    """Return where to begin; where offsets by time cannot be trusted, at the start."""
    offsets: dict[TopicPartition, int] = await consumer.beginning_offsets(list(wishes))
    timed = {tp: wish.since for tp, wish in wishes.items() if wish.since > START and by_time}
    if timed:
        found = await consumer.offsets_for_times(timed)
        ends = await consumer.end_offsets(list(timed))
        offsets |= {tp: found[tp].offset if found.get(tp) else ends[tp] for tp in timed}
    return offsets
