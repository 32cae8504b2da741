"""The changelog is read to its true end, by the newest owner's writer only."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from faust.types import TP

from streams.engine import ChangelogFailed, Fenced, PartitionState, Revoked, TooLarge
from streams.engine.changelog import ChangelogWriter, restore, transactional_id
from streams.engine.stores import MemoryStore, RocksStore, Store
from tests.engine.workers import Cluster


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


class Partition:
    """Opens states of partition 1, as one owner after the other would."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.tp = cluster.tps("changelog")[1]

    async def open(self, store: Store) -> tuple[PartitionState, int]:
        fences = self.cluster.broker.fences
        name = transactional_id(self.cluster.name, "counts", 1) if fences else None
        writer = ChangelogWriter(self.cluster.connection, self.tp, transactional_id=name)
        await writer.open()
        read = await restore(self.cluster.connection, self.tp, store)
        return PartitionState("counts", TP("in", 1), store, writer, 10_000), read


@pytest.fixture
def partition(cluster: Cluster) -> Partition:
    return Partition(cluster)


def test_an_empty_changelog(partition: Partition):
    async def check() -> None:
        state, read = await partition.open(MemoryStore())
        assert (read, list(state.items())) == (0, [])
        await state.close()

    run(check())


def test_the_end_is_found_behind_transaction_markers(partition: Partition):
    async def check() -> None:
        state, _ = await partition.open(MemoryStore())
        for number in range(3):
            await state.commit({b"s/a": b"%d" % number, b"s/b": b"x", b"p/1": b"%d" % number})
        await state.commit({b"s/b": None, b"p/1": b"9"})
        await state.close()
        state, read = await partition.open(MemoryStore())
        assert read == 11
        assert dict(state.items()) == {b"s/a": b"2", b"p/1": b"9"}
        await state.close()

    run(check())


@pytest.mark.kafka
def test_an_aborted_transaction_is_not_read(partition: Partition):

    async def check() -> None:
        state, _ = await partition.open(MemoryStore())
        await state.commit({b"s/a": b"1", b"p/1": b"1"})
        producer = state._writer._producer
        await producer.begin_transaction()
        await producer.send_and_wait(partition.tp.topic, b"lost", key=b"s/a", partition=1)
        # The next owner's writer ends the transaction that its predecessor left open.
        after, _ = await partition.open(MemoryStore())
        assert dict(after.items()) == {b"s/a": b"1", b"p/1": b"1"}
        await state.close()
        await after.close()

    run(check())


@pytest.mark.kafka
def test_an_older_owner_is_fenced(partition: Partition):

    async def check() -> None:
        old, _ = await partition.open(MemoryStore())
        await old.commit({b"p/1": b"1"})
        new, _ = await partition.open(MemoryStore())
        with pytest.raises(Fenced):
            await old.commit({b"p/1": b"late"})
        assert old.get(b"p/1") == b"1"
        await new.commit({b"p/1": b"2"})
        with pytest.raises(Fenced):
            await old.commit({b"p/1": b"late"})
        await old.close()
        await new.close()

    run(check())


def test_a_store_on_disk_reads_only_the_tail(partition: Partition, tmp_path):

    async def check() -> None:
        state, _ = await partition.open(RocksStore(tmp_path))
        await state.commit({b"s/%d" % number: b"1" for number in range(50)} | {b"p/1": b"1"})
        await state.close()
        elsewhere, read = await partition.open(MemoryStore())
        assert read == 51
        await elsewhere.commit({b"s/1": b"2", b"p/1": b"2"})
        await elsewhere.close()
        state, read = await partition.open(RocksStore(tmp_path))
        assert (read, state.get(b"s/1"), state.get(b"s/2")) == (2, b"2", b"1")
        await state.close()

    run(check())


@pytest.mark.parametrize("other", ["changelog", "out"])
def test_a_store_of_another_changelog_is_built_again(partition: Partition, tmp_path, other: str):
    """Ahead of its changelog, or with another record where its last one should be."""

    async def check() -> None:
        state, _ = await partition.open(RocksStore(tmp_path))
        await state.commit({b"s/old": b"1", b"p/1": b"1"})
        await state.close()
        partition.tp = partition.cluster.tps(other)[2]
        if other == "out":
            fresh, _ = await partition.open(MemoryStore())
            for number in range(5):
                await fresh.commit({b"s/new": b"%d" % number, b"p/1": b"new"})
            await fresh.close()
        state, _ = await partition.open(RocksStore(tmp_path))
        assert state.get(b"s/old") is None
        assert (state.get(b"s/new") is not None) == (other == "out")
        await state.close()

    run(check())


def test_a_record_that_is_too_large_is_refused_before_anything_is_written(partition: Partition):
    async def check() -> None:
        state, _ = await partition.open(MemoryStore())
        with pytest.raises(TooLarge):
            await state.commit({b"s/a": b"1", b"s/b": b"x" * 20_000})
        await state.commit({b"p/1": b"1"})
        assert dict(state.items()) == {b"p/1": b"1"}
        await state.close()

    run(check())


def test_what_is_being_written_counts_already(partition: Partition):
    async def check() -> None:
        state, _ = await partition.open(MemoryStore())
        await state.commit({b"s/a": b"1", b"s/b": b"1"})
        writing = asyncio.ensure_future(state.commit({b"s/a": b"2", b"s/b": None}))
        await asyncio.sleep(0)
        assert (state.get(b"s/a"), state.get(b"s/b")) == (b"2", None)
        assert dict(state.items()) == {b"s/a": b"1", b"s/b": b"1"}
        await writing
        assert (state.get(b"s/a"), state.get(b"s/b"), dict(state.items())) == (b"2", None, {b"s/a": b"2"})
        await state.close()

    run(check())


def test_a_closed_state_is_revoked(partition: Partition):
    async def check() -> None:
        state, _ = await partition.open(MemoryStore())
        await state.close()
        with pytest.raises(Revoked):
            await state.commit({b"p/1": b"1"})

    run(check())


def test_a_write_without_outcome_leaves_the_store_as_it_was(partition: Partition):
    async def check() -> None:
        state, _ = await partition.open(MemoryStore())
        await state.commit({b"p/1": b"1"})
        await state._writer.close()
        with pytest.raises(ChangelogFailed):
            await state.commit({b"p/1": b"2"})
        assert state.get(b"p/1") == b"1"
        with pytest.raises(ChangelogFailed):
            await state.commit({b"p/1": b"3"})
        await state.close()

    run(check())
