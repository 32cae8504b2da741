"""The state of one table partition, as its owner reads and writes it."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from streams.engine.changelog import ChangelogWriter
from streams.engine.errors import ChangelogFailed, Fenced, Revoked, StoreFailed, TooLarge
from streams.engine.partition import TP
from streams.engine.producing import size_in_request
from streams.engine.stores import Changes, Mark, Store


@dataclass(frozen=True)
class Recovery:
    """What bringing a partition's state up took.

    records: read from its changelog.
    seconds: for fencing the former owner and reading.
    """

    records: int
    seconds: float


class PartitionState:
    """What a stage keeps of one partition; belongs to one assignment.

    The changelog comes first: the local store never holds what the changelog may not.
    """

    def __init__(self, table: str, source: TP, store: Store, writer: ChangelogWriter, max_record: int) -> None:
        self.table = table
        self.source = source
        self.recovery = Recovery(0, 0.0)
        self._store = store
        self._writer = writer
        self._max_record = max_record
        self._lock = asyncio.Lock()
        self._under_way: dict[bytes, bytes | None] = {}
        self._ended: Revoked | ChangelogFailed | StoreFailed | None = None

    @property
    def partition(self) -> int:
        """The partition number of the table and of the topic it is folded from."""
        partition: int = self.source.partition
        return partition

    @property
    def applied(self) -> int:
        """The offset of the last changelog record that the local store holds; -1 before the first."""
        return -1 if self._store.mark is None else self._store.mark.offset

    @property
    def fences(self) -> bool:
        """Whether a replaced owner's writes are refused by the broker."""
        return self._writer.fences

    @property
    def ended(self) -> Revoked | ChangelogFailed | StoreFailed | None:
        """Why nothing can be written any more; None while the state is in use."""
        return self._ended

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None when there is none; one that is being written counts already."""
        return self._under_way[key] if key in self._under_way else self._store.get(key)

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Return all keys with this prefix and their values; commit nothing meanwhile."""
        return self._store.items(prefix)

    async def commit(self, changes: Changes) -> None:
        """Write to the changelog, wait for the acks, then to the local store.

        changes: a value for each key, None to delete it; in the order given, so the position
            record comes last. One transaction where the broker has them.

        Raises TooLarge before anything is written; Fenced or Revoked when the partition has
        another owner; ChangelogFailed when the outcome is unknown, StoreFailed when only the local
        store did not take it; after either the partition is built again from its changelog.
        """
        if not changes:
            return
        for key, value in changes.items():
            if (size := size_in_request(key, value)) > self._max_record:
                raise TooLarge(f"state of {key!r} takes {size} of {self._max_record} bytes")
        self._under_way.update(changes)
        try:
            await self._write(changes)
        finally:
            for key, value in changes.items():
                if key in self._under_way and self._under_way[key] is value:  # and not that of a later write
                    del self._under_way[key]

    async def _write(self, changes: Changes) -> None:
        async with self._lock:
            if self._ended is not None:
                raise self._ended
            try:
                mark = await self._writer.append(changes)
            except (Fenced, ChangelogFailed) as error:
                self._ended = error
                raise
            except asyncio.CancelledError:
                self._ended = ChangelogFailed("a state write was cancelled half-way")
                raise
            if self._ended is None:
                self._apply(changes, mark)

    def _apply(self, changes: Changes, mark: Mark) -> None:
        try:
            self._store.apply(changes, mark)
        except Exception as error:
            # RocksDB refuses every write after one that failed, until it is opened again.
            self._ended = StoreFailed(f"{self.table}-{self.partition}: {error}")
            raise self._ended from error

    async def close(self) -> None:
        """End the state; later commits raise Revoked."""
        if self._ended is None:
            self._ended = Revoked(f"{self.table}-{self.partition} was revoked")
        await self._writer.close()
        async with self._lock:
            self._store.close()
