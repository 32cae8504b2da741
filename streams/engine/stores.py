"""Where the state of one table partition is kept on this machine; the changelog is the original."""

import hashlib
import logging
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

logger = logging.getLogger(__name__)

Changes = Mapping[bytes, bytes | None]


@dataclass(frozen=True)
class Mark:
    """The last changelog record a store has applied.

    offset: its offset in the changelog partition.
    digest: of its key and value, so that a changelog made again is not taken for this one.
    """

    offset: int
    digest: bytes


def digest(key: bytes | None, value: bytes | None) -> bytes:
    """Return what tells a record from another one at the same offset."""
    parts = (key or b"", b"\0" if value is None else b"\1" + value)
    return hashlib.blake2b(len(parts[0]).to_bytes(4, "big") + b"".join(parts)).digest()[:16]


class Store(Protocol):
    """A key-value store which takes changes and their mark in one step."""

    @property
    def mark(self) -> Mark | None:
        """The last changelog record applied; None when empty."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value, None when there is none."""

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Return keys with this prefix and their values; not to be changed meanwhile."""

    def apply(self, changes: Changes, mark: Mark) -> None:
        """Write values, delete keys whose value is None, and remember the mark."""

    def wipe(self) -> None:
        """Forget everything."""

    def close(self) -> None:
        """Let go of files."""


class MemoryStore:
    """A dict; read from its changelog at each start."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._mark: Mark | None = None

    @property
    def mark(self) -> Mark | None:
        """The last changelog record applied; None when empty."""
        return self._mark

    def get(self, key: bytes) -> bytes | None:
        """Return the value, None when there is none."""
        return self._values.get(key)

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Return keys with this prefix and their values, in the order of first writing."""
        return (item for item in list(self._values.items()) if item[0].startswith(prefix))

    def apply(self, changes: Changes, mark: Mark) -> None:
        """Write values, delete keys whose value is None, and remember the mark."""
        for key, value in changes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self._mark = mark

    def wipe(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._mark = None

    def close(self) -> None:
        """Do nothing."""


# Sorts before every key of a table, which are text.
_MARK_KEY = b"\0mark"


class RocksStore:
    """RocksDB in a directory of its own; a start reads only the changelog's tail."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open()

    def _open(self) -> None:
        # Optional: only who asks for stores on disk needs it installed.
        from rocksdict import Options, Rdict, WriteBatch  # noqa: PLC0415

        self._directory.mkdir(parents=True, exist_ok=True)
        self._batch: Any = WriteBatch
        self._db = Rdict(str(self._directory), Options(raw_mode=True))
        stored = self._db.get(_MARK_KEY)
        self._mark = Mark(int.from_bytes(stored[:8], "big"), stored[8:]) if stored else None

    @property
    def mark(self) -> Mark | None:
        """The last changelog record applied; None when empty."""
        return self._mark

    def get(self, key: bytes) -> bytes | None:
        """Return the value, None when there is none."""
        value: bytes | None = self._db.get(key)
        return value

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Return keys with this prefix and their values, by key."""
        for key, value in self._db.items(from_key=prefix or b"\1"):
            if not key.startswith(prefix):
                return
            yield key, value

    def apply(self, changes: Changes, mark: Mark) -> None:
        """Write values, delete keys whose value is None, and remember the mark, all or nothing."""
        batch = self._batch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(_MARK_KEY, mark.offset.to_bytes(8, "big") + mark.digest)
        self._db.write(batch)
        self._mark = mark

    def wipe(self) -> None:
        """Forget everything."""
        self.close()
        shutil.rmtree(self._directory)
        self._open()

    def close(self) -> None:
        """Let go of the directory."""
        try:
            self._db.close()
        except Exception as error:  # noqa: BLE001  (RocksDB's own; it has let go all the same)
            logger.warning("%s: %s", self._directory, error)
