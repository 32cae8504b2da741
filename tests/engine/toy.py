"""A worker with a toy fold: it counts records by key and publishes one output for each.

Run as a module it is a worker process: python -m tests.engine.toy BOOTSTRAP NAME DIRECTORY.
"""

import asyncio
import json
import logging
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import faust

from streams.engine import (
    DEVELOPMENT,
    Abilities,
    Batch,
    Connection,
    Out,
    PartitionState,
    Publisher,
    Reading,
    Stage,
    Table,
    Tuning,
    abilities,
    faust_app,
)
from streams.errors import UnreadableState
from streams.worker import run_app

PARTITIONS = 4
# As short as Apache Kafka lets a session be.
QUICK = Tuning(session_timeout_s=6.0, heartbeat_s=0.5)


class Toy:
    """Counts per key; state `s/<key>` is [count, last offset], `p/<n>` the position."""

    def __init__(self, name: str, publisher: Publisher) -> None:
        self.name = name
        self.publisher = publisher
        self.first_at: float | None = None
        self.pause_s = float(os.environ.get("TOY_PAUSE", "0"))
        # Fails once at each of these offsets, of partition 0.
        self.fail_at = set(json.loads(os.environ.get("TOY_FAIL_AT", "[]")))
        # Where a state is found that cannot be read: when it is "restored", or in a "batch".
        self.unreadable = os.environ.get("TOY_UNREADABLE", "")

    async def on_restored(self, partition: int, state: PartitionState) -> int | None:
        """Read on at the position record."""
        if self.unreadable == "restored":
            raise UnreadableState("told to find a state of codec version 99")
        position = state.get(b"p/%d" % partition)
        return None if position is None else int(position)

    async def handle(self, batch: Batch) -> None:
        """Publish, remember, done."""
        if self.unreadable == "batch":
            raise UnreadableState("told to find a state of codec version 99")
        if self.first_at is None:
            self.first_at = time.time()
            print("first", self.first_at, flush=True)  # noqa: T201  (read by the tests)
        outs, changes = self.fold(batch)
        if self.pause_s:
            await asyncio.sleep(self.pause_s)
        await self.publisher.publish(outs)
        self._maybe_fail(batch)
        changes[b"p/%d" % batch.partition] = b"%d" % batch.next_offset
        await batch.state.commit(changes)
        batch.done()

    def fold(self, batch: Batch) -> tuple[list[Out], dict[bytes, bytes | None]]:
        """Compute the outputs and the touched keys' states."""
        outs = []
        touched: dict[bytes, list[int]] = {}
        for record in batch.records:
            if (entry := touched.get(record.key)) is None:
                stored = batch.state.get(b"s/" + record.key)
                entry = touched[record.key] = json.loads(stored) if stored else [0, -1]
            if record.offset > entry[1]:
                entry[0] += 1
                entry[1] = record.offset
            value = b"%d:%d" % (batch.partition, record.offset)
            outs.append(Out(f"{self.name}-out", batch.partition, record.key, value))
        changes: dict[bytes, bytes | None] = {b"s/" + key: json.dumps(entry).encode() for key, entry in touched.items()}
        return outs, changes

    def _maybe_fail(self, batch: Batch) -> None:
        for offset in list(self.fail_at):
            if batch.partition == 0 and batch.first_offset <= offset < batch.next_offset:
                self.fail_at.discard(offset)
                raise RuntimeError(f"told to fail at {offset}")


def toy_app(
    connection: Connection,
    able: Abilities,
    name: str,
    directory: Path,
    *,
    on_disk: bool = False,
    tuning: Tuning | None = None,
    max_records: int = 200,
) -> tuple[faust.App, Toy]:
    """Build the app; its topics are NAME-in, NAME-out and NAME-changelog."""
    publisher = Publisher(connection, idempotent=able.fences)
    toy = Toy(name, publisher)
    table = Table(
        "counts",
        f"{name}-changelog",
        toy.on_restored,
        directory=directory / "tables" if on_disk else None,
    )
    stage = Stage(
        "toy",
        (f"{name}-in",),
        toy.handle,
        Reading(contiguous=True, max_records=max_records),
        table=table,
    )
    app = faust_app(
        name,
        connection,
        stages=[stage],
        abilities=able,
        datadir=directory / "faust",
        tuning=tuning or replace(QUICK if able.fences else DEVELOPMENT, drain_s=2.0),
    )
    app.on_before_shutdown.connect(_stopper(publisher), weak=False)
    return app, toy


def _stopper(publisher: Publisher):  # type: ignore[no-untyped-def]
    async def stop(*_: object, **__: object) -> None:
        await publisher.stop()

    return stop


def main(bootstrap: str, name: str, directory: str) -> None:
    """Run one worker until it is told to stop."""
    logging.basicConfig(level=logging.INFO)
    connection = Connection(bootstrap, request_timeout_ms=int(os.environ.get("TOY_REQUEST_MS", "15000")))
    able = asyncio.run(abilities(connection))
    tuning = replace(QUICK if able.fences else DEVELOPMENT, drain_s=float(os.environ.get("TOY_DRAIN", "2")))
    on_disk = bool(os.environ.get("TOY_DISK"))

    def make() -> faust.App:
        app, _ = toy_app(connection, able, name, Path(directory), on_disk=on_disk, tuning=tuning)
        return app

    raise SystemExit(run_app(make, lambda: None))


if __name__ == "__main__":
    main(*sys.argv[1:4])
