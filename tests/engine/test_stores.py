"""All stores behave alike; the ones on disk remember."""

from pathlib import Path

import pytest

from streams.engine.stores import Mark, MemoryStore, RocksStore, Store, digest

MARK = Mark(7, digest(b"k", b"v"))


@pytest.fixture(params=["memory", "rocks"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return RocksStore(tmp_path / "a" / "b")


def test_values_come_back(store: Store):
    assert store.mark is None
    store.apply({b"s/a": b"1", b"s/b": b"2", b"p/0": b"3"}, MARK)
    assert (store.get(b"s/a"), store.get(b"s/z"), store.mark) == (b"1", None, MARK)
    assert dict(store.items(b"s/")) == {b"s/a": b"1", b"s/b": b"2"}
    assert len(dict(store.items())) == 3


def test_none_deletes(store: Store):
    store.apply({b"a": b"1"}, MARK)
    store.apply({b"a": None, b"never": None}, Mark(8, b"x"))
    assert dict(store.items()) == {}


def test_wiped_means_empty(store: Store):
    store.apply({b"a": b"1"}, MARK)
    store.wipe()
    assert (dict(store.items()), store.mark) == ({}, None)


def test_a_store_on_disk_remembers(tmp_path: Path):
    store = RocksStore(tmp_path)
    store.apply({b"a": b"1"}, MARK)
    store.close()
    again = RocksStore(tmp_path)
    assert (dict(again.items()), again.mark) == ({b"a": b"1"}, MARK)


def test_a_deletion_is_not_an_empty_value():
    assert digest(b"k", None) != digest(b"k", b"")
