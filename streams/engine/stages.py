"""What an app tells the engine about its stages and their tables."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from streams.engine.batch import Batch
from streams.engine.lanes import Reading
from streams.engine.partition import TP
from streams.engine.state import PartitionState
from streams.engine.stores import MemoryStore, RocksStore, Store

OnRestored = Callable[[int, PartitionState], Awaitable[int | None]]
BeforeRelease = Callable[[int], Awaitable[None]]
OnClosed = Callable[[int], None]


def _nothing(partition: int) -> None:
    """Do nothing when a partition closes."""


async def _no_release(partition: int) -> None:
    """Have everything stored already."""


@dataclass(frozen=True)
class Table:
    """State by key, one partition for each partition of the topic it is folded from.

    changelog: its topic, with as many partitions.
    on_restored: called with a partition whose state is complete, before its first batch; decodes
        the position record and returns where to read on, None for the committed offset (else the
        earliest). Not called for a partition that was kept over a rebalance.
    before_release: called when a partition may go away and its batches are back, to store what is not stored yet.
    on_closed: called when a partition and its state are gone, or will be built again.
    directory: for stores on disk; None keeps the state in memory.
    """

    name: str
    changelog: str
    on_restored: OnRestored
    before_release: BeforeRelease = _no_release
    on_closed: OnClosed = _nothing
    directory: Path | None = None

    def open_store(self, partition: int) -> Store:
        """Open the local store of a partition."""
        if self.directory is None:
            return MemoryStore()
        return RocksStore(self.directory / self.name / str(partition))

    def changelog_tp(self, partition: int) -> TP:
        """Return the changelog partition that belongs to a partition."""
        return TP(self.changelog, partition)


@dataclass(frozen=True)
class Stage:
    """One Faust agent: what it reads, how, and the function that gets the batches.

    handle: works on a batch and calls its done(). When it raises, the batch is read again after
        a pause; it must then start from `batch.state`, not from anything it computed before.
    concurrency: how many partitions are worked on at the same time.
    """

    name: str
    topics: tuple[str, ...]
    handle: Callable[[Batch], Awaitable[None]]
    reading: Reading = field(default_factory=Reading)
    concurrency: int = 8
    table: Table | None = None
