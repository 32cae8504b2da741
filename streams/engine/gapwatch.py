"""Notices while reading that records are missing, and reads them again where that may help."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import ConsumerStoppedError, KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError

from streams.engine.gaps import Gap, GapCause, first_hole
from streams.engine.lanes import Lane

logger = logging.getLogger(__name__)

# How often the same hole is read again before the broker is believed.
_HOLE_ATTEMPTS = 5
_BACKOFF_S = 0.5


class GapWatch:
    """Lives in the consumer's thread.

    move: sets where a lane's next read is. record: has the app write a gap down.
    beyond_end_s: see Tuning.
    """

    def __init__(
        self,
        move: Callable[[Lane, int], None],
        record: Callable[[Gap], "asyncio.Future[None]"],
        beyond_end_s: float,
    ) -> None:
        self._move = move
        self._record = record
        self._beyond_end_s = beyond_end_s

    async def read(self, consumer: AIOKafkaConsumer, lane: Lane, state: Any) -> None:
        """Give a lane what aiokafka has read for it, and notice what it has not.

        state: aiokafka's state of the partition, with position and high water after the read.
        Raises KafkaError when it cannot be read now.
        """
        while await self._read(consumer, lane, state) and lane.singly and lane.recording is None:
            """One by one, up to the one that cannot be decoded."""

    async def _read(self, consumer: AIOKafkaConsumer, lane: Lane, state: Any) -> bool:
        records: list[Any] = []
        try:
            records = (await consumer.getmany(lane.key, max_records=1 if lane.singly else None)).get(lane.key, [])
        except OffsetOutOfRangeError:
            await self.out_of_range(consumer, lane)
        except NoOffsetForPartitionError:
            self._move(lane, lane.position)
        except (KafkaError, ConsumerStoppedError):
            raise
        except Exception as error:  # noqa: BLE001  (whatever a producer has put there, such as a header's name that is no text)
            self._pass_by(lane, error)
        else:
            await self.accept(consumer, lane, records, state)
        return bool(records)

    def _pass_by(self, lane: Lane, error: Exception) -> None:
        """Read one by one up to what cannot be decoded, then offset by offset until something can."""
        if not lane.singly:
            logger.warning("%s: something after offset %s cannot be decoded: %r", lane.tp, lane.position, error)
            lane.singly = True
            self._move(lane, lane.position)
            return
        if lane.unreadable_from is None:
            lane.unreadable_from = lane.position
        self._move(lane, lane.position + 1)

    async def accept(self, consumer: AIOKafkaConsumer, lane: Lane, records: list[Any], state: Any) -> None:
        """Give a lane what was read for it, and notice what was not."""
        if not state.has_valid_position:
            return
        lane.end = state.highwater if state.lso is None or state.lso < 0 else state.lso
        if await self._is_beyond_end(consumer, lane):
            return
        if lane.unreadable_from is not None:
            if state.position != lane.position or lane.position == lane.end:
                self._skip_unreadable(lane, lane.unreadable_from)
            return
        if not records and state.position == lane.position:
            return
        if not lane.reading.contiguous:
            lane.accept(records, state.position)
            return
        hole = first_hole(records, lane.position, state.position)
        if hole is None:
            lane.hole_seen = 0
            lane.accept(records, state.position)
        else:
            count, start, stop = hole
            lane.accept(records[:count], start)
            await self._read_hole_again(consumer, lane, start, stop)

    def _skip_unreadable(self, lane: Lane, start: int) -> None:
        gap = Gap(lane.tp, start, lane.position, GapCause.UNREADABLE)
        lane.unreadable_from = None
        self._move(lane, start)
        self._skip(lane, gap)

    async def _read_hole_again(self, consumer: AIOKafkaConsumer, lane: Lane, start: int, stop: int) -> None:
        """Records between two offsets did not come: read them again, or say that they are gone."""
        first = int((await consumer.beginning_offsets([lane.key]))[lane.key])
        logger.warning("%s: offsets %s to %s did not come", lane.tp, start, stop - 1)
        if first > start:
            self._skip(lane, Gap(lane.tp, start, first, GapCause.RETENTION))
        elif lane.hole_seen >= _HOLE_ATTEMPTS:
            self._skip(lane, Gap(lane.tp, start, stop, GapCause.MISSING))
        else:
            lane.hole_seen += 1
            self._read_again(lane)

    async def _is_beyond_end(self, consumer: AIOKafkaConsumer, lane: Lane) -> bool:
        """Notice a topic that ends before our position.

        Apache Kafka answers with an error then, Tansu with nothing at all, for ever.
        """
        if lane.end is None or lane.end >= lane.position or lane.busy:
            lane.beyond_end_since = None
            return False
        now = time.monotonic()
        lane.beyond_end_since = lane.beyond_end_since or now
        if now - lane.beyond_end_since < self._beyond_end_s:
            return False
        lane.beyond_end_since = None
        await self.out_of_range(consumer, lane)
        return True

    async def out_of_range(self, consumer: AIOKafkaConsumer, lane: Lane) -> None:
        """The position is not in the log: read on from the earliest record, and say so."""
        first = int((await consumer.beginning_offsets([lane.key]))[lane.key])
        cause = GapCause.RETENTION if first > lane.position else GapCause.BEYOND_END
        self._skip(lane, Gap(lane.tp, lane.position, first, cause))

    def _skip(self, lane: Lane, gap: Gap) -> None:
        """Read on after a gap, but only once it is written down: a worker killed before that comes upon it again."""
        logger.error("%s: reading goes on at %s: %s", gap.tp, gap.stop, gap.cause.value)
        lane.recording = self._record(gap)
        lane.recording.add_done_callback(lambda recorded: self._recorded(lane, gap, recorded))

    def _recorded(self, lane: Lane, gap: Gap, recorded: "asyncio.Future[None]") -> None:
        lane.recording = None
        if recorded.cancelled() or recorded.exception() is not None:
            logger.warning("%s: a gap is not written down yet, so it is looked for again", gap.tp)
            self._read_again(lane)
            return
        lane.hole_seen, lane.singly = 0, False
        if lane.position != gap.start:
            return  # a batch before the gap has failed meanwhile, and is being read again
        if gap.stop < gap.start:
            # What is at hand stood where the partition now ends, or was another topic's.
            lane.restart(gap.stop)
        lane.accept((), gap.stop)
        self._move(lane, gap.stop)

    def _read_again(self, lane: Lane) -> None:
        lane.not_read_before = time.monotonic() + _BACKOFF_S
        self._move(lane, lane.position)
