"""Notices while reading that records are missing, and reads them again where that may help."""

import logging
import time
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer

from streams.engine.gaps import Gap, GapCause, first_hole
from streams.engine.lanes import Lane

logger = logging.getLogger(__name__)

# How often the same hole is read again before the broker is believed.
_HOLE_ATTEMPTS = 5
_HOLE_BACKOFF_S = 0.5
# How long a position past the end must be seen: a new leader's high water lags a moment.
_BEYOND_END_S = 3.0


class GapWatch:
    """Lives in the consumer's thread.

    move: sets where a lane's next read is. tell: passes a gap on to the app.
    """

    def __init__(self, move: Callable[[Lane, int], None], tell: Callable[[Gap], None]) -> None:
        self._move = move
        self._tell = tell

    async def accept(self, consumer: AIOKafkaConsumer, lane: Lane, records: list[Any], state: Any) -> None:
        """Give a lane what was read for it, and notice what was not.

        state: aiokafka's state of the partition, with position and high water after the read.
        """
        if not state.has_valid_position:
            return
        lane.end = state.highwater if state.lso is None or state.lso < 0 else state.lso
        if await self._is_beyond_end(consumer, lane):
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

    async def _read_hole_again(self, consumer: AIOKafkaConsumer, lane: Lane, start: int, stop: int) -> None:
        """Records between two offsets did not come: read them again, or say that they are gone."""
        first = int((await consumer.beginning_offsets([lane.key]))[lane.key])
        target, cause = start, None
        if first > start:
            target, cause = first, GapCause.RETENTION
        elif lane.hole_seen >= _HOLE_ATTEMPTS:
            target, cause = stop, GapCause.MISSING
        logger.warning("%s: offsets %s to %s did not come", lane.tp, start, stop - 1)
        if cause:
            self._report(Gap(lane.tp, start, target, cause))
            lane.hole_seen = 0
        else:
            lane.hole_seen += 1
            lane.not_before = time.monotonic() + _HOLE_BACKOFF_S
        self._move(lane, target)

    async def _is_beyond_end(self, consumer: AIOKafkaConsumer, lane: Lane) -> bool:
        """Notice a topic that ends before our position.

        Apache Kafka answers with an error then, Tansu with nothing at all, for ever.
        """
        if lane.end is None or lane.end >= lane.position or lane.busy:
            lane.beyond_end_since = None
            return False
        now = time.monotonic()
        lane.beyond_end_since = lane.beyond_end_since or now
        if now - lane.beyond_end_since < _BEYOND_END_S:
            return False
        lane.beyond_end_since = None
        await self.out_of_range(consumer, lane)
        return True

    async def out_of_range(self, consumer: AIOKafkaConsumer, lane: Lane) -> None:
        """The position is not in the log: read on from the earliest record, and say so."""
        first = int((await consumer.beginning_offsets([lane.key]))[lane.key])
        cause = GapCause.RETENTION if first > lane.position else GapCause.BEYOND_END
        self._report(Gap(lane.tp, lane.position, first, cause))
        lane.hole_seen = 0
        if not lane.busy:
            lane.settled = first
        lane.restart(first)
        self._move(lane, first)

    def _report(self, gap: Gap) -> None:
        logger.error("%s: reading goes on at %s: %s", gap.tp, gap.stop, gap.cause.value)
        self._tell(gap)
