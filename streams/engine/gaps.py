"""Finds holes in the offsets of what was read, and names their causes."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from aiokafka import ConsumerRecord

from streams.engine.partition import TP


class GapCause(Enum):
    """Why records that were wanted cannot be had."""

    RETENTION = "the wanted records have been deleted"
    BEYOND_END = "the topic ends before the wanted offset: it was made again or lost its end"
    MISSING = "the broker keeps answering without the wanted records"
    UNREADABLE = "the client cannot decode what stands there"


@dataclass(frozen=True)
class Gap:
    """Offsets `start` (inclusive) to `stop` (exclusive) will not be read.

    For BEYOND_END, reading goes on at `stop`, which is before `start`.
    """

    tp: TP
    start: int
    stop: int
    cause: GapCause


def first_hole(records: Sequence[ConsumerRecord], position: int, next_position: int) -> tuple[int, int, int] | None:
    """Find the first missing offsets in what one read returned.

    position: the offset that was asked for; next_position: where the next read goes on.
    Returns (number of records before the hole, its first offset, the offset after it).
    """
    expected = position + len(records)
    if not records or records[0].offset != position or records[-1].offset != expected - 1:
        for count, record in enumerate(records):
            if record.offset != position + count:
                return count, position + count, record.offset
    return (len(records), expected, next_position) if next_position > expected else None
