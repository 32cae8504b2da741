"""What the watch knows, as people and probes read it: whether a worker lives, is ready, and where it stands."""

from dataclasses import dataclass
from typing import NamedTuple

from faust.types import TP


class Place(NamedTuple):
    """A partition and the stage that reads it."""

    stage: str
    topic: str
    partition: int

    @property
    def tp(self) -> TP:
        """The partition alone."""
        return TP(self.topic, self.partition)

    @property
    def name(self) -> str:
        """The partition's name; a topic has one stage."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class PartitionStatus:
    """Where a worker stands in one partition."""

    stage: str
    topic: str
    partition: int
    position: int
    """The next offset: every record before it is dealt with."""
    end: int
    """Where the partition ended when the broker was last asked."""
    lag: int
    last_progress: str
    """When the position last moved, at first: when reading began."""
    waiting_s: float
    """How long records have been waiting while none was dealt with."""
    stalled: bool


@dataclass(frozen=True)
class WorkerStatus:
    """A worker at one moment."""

    live: bool
    """Its event loop turns."""
    ready: bool
    """It lives, the broker answers, every assigned partition is recovered and none stalls."""
    loop_blocked_s: float
    broker_away: bool
    recovering: tuple[str, ...]
    """Assigned partitions that are not read yet."""
    stalled: tuple[str, ...]
    partitions: tuple[PartitionStatus, ...]
