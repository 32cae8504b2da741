"""How far an app is with its partitions, as told to whoever watches over it."""

# ruff: noqa: SLF001  (the consumer's thread and its lanes are the engine's own)

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.engine.partition import TP

if TYPE_CHECKING:
    import faust


@dataclass(frozen=True)
class Read:
    """One partition that is being read.

    position: every record before it is done.
    is_out: a batch of it is with its stage now.
    """

    position: int
    is_out: bool


@dataclass(frozen=True)
class Standing:
    """An app's partitions at one moment.

    settled: the group has given out its partitions, and all of this worker's were brought up once since.
    assigned: partitions of this worker, being read or not yet.
    read: those of them that are being read.
    restored: of the others with a table, those whose turn it is: the offset of the last changelog record applied.
    """

    settled: bool = False
    assigned: frozenset[TP] = frozenset()
    read: Mapping[TP, Read] = field(default_factory=dict)
    restored: Mapping[TP, int] = field(default_factory=dict)


def standing(app: "faust.App") -> Standing:
    """Look at an app that has been started; to be called in its loop."""
    consumer = app.consumer
    if not consumer._thread.is_running():
        return Standing()
    read = {tp: Read(lane.settled, consumer.is_out(tp)) for tp, lane in consumer.lanes.items() if not lane.closed}
    return Standing(
        settled=app.tables.actives_ready and not app.in_recovery and not app.rebalancing,
        assigned=frozenset(consumer.assignment()),
        read=read,
        restored={tp: applied for tp, applied in app.tables.restored().items() if tp not in read},
    )
