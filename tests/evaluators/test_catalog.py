"""The catalog keeps traces whole and in order, forgets them by their age, and is the same after a restart."""

import json

import pytest

from streams.core.eval_states import StagePosition
from streams.evaluators.catalog import Catalog, CatalogRecord
from streams.wire import Wire, decode_kept_trace, kept_trace_times
from tests.evaluators.stored import StoredState

DAY = 86_400_000


class Feed:
    """A catalog whose changes are stored after each record, or when told."""

    def __init__(self, retention_ms=DAY, max_bytes=1_000_000):
        self.state = StoredState()
        self.limits = retention_ms, max_bytes
        self.offset = 0
        self.restart()

    def restart(self):
        place = getattr(self, "catalog", None)
        place = StagePosition(place.position, place.now) if place else StagePosition()
        self.catalog = Catalog(0, place, self.state.get, *self.limits)
        self.catalog.restore(self.state.items(b"t/"))

    def put(self, trace_id, started_at=0, at=0, session="s", *, store=True, **fields):
        trace = {"trace_id": trace_id, "session_id": session, "status": "COMPLETED", "started_at": started_at, **fields}
        whole = Wire().read_trace(json.dumps(trace).encode(), None, 0).whole
        said = self.catalog.apply(CatalogRecord(self.offset, at, whole))
        self.offset += 1
        if store:
            self.state.store(self.catalog.flush())
        return said

    def history(self, trace_id, session="s"):
        return [trace["trace_id"] for trace in self.catalog.subject(session, trace_id).history]


def test_an_update_is_merged_into_what_is_known():
    feed = Feed()
    feed.put("a", 1, input="q", status="RUNNING")
    feed.put("a", 2, output="o", store=False)
    found = feed.catalog.find("s", "a")
    assert (found["status"], found["started_at"], found["input"], found["output"]) == ("COMPLETED", 2, "q", "o")
    feed.state.store(feed.catalog.flush())
    assert feed.catalog.find("s", "a") == found == decode_kept_trace(feed.state.values[b"t/s\0a"])


def test_a_trace_is_found_while_its_write_is_under_way():
    feed = Feed()
    feed.put("a", store=False)
    feed.catalog.flush()
    assert feed.catalog.find("s", "a")["trace_id"] == "a"


def test_history_is_the_three_traces_that_started_before():
    feed = Feed()
    for trace_id, started_at in [("d", 40), ("b", 20), ("a", 10), ("e", 50), ("c", 30), ("also-c", 30)]:
        feed.put(trace_id, started_at)
    feed.put("x", 45, session="other")
    assert feed.history("e") == ["also-c", "c", "d"]
    assert feed.history("b") == ["a"]
    assert feed.history("a") == []
    feed.put("d", 5)
    assert feed.history("e") == ["b", "also-c", "c"]
    assert feed.history("a") == ["d"]


def test_what_is_too_old_is_forgotten_an_update_keeps_it():
    feed = Feed(retention_ms=100)
    feed.put("a", 1, at=1000)
    feed.put("b", 2, at=1050)
    feed.put("a", 1, at=1060)
    feed.put("c", 3, at=1151)
    assert feed.catalog.find("s", "b") is None
    assert feed.history("c") == ["a"]
    assert b"t/s\0b" not in feed.state.values
    feed.put("d", 4, at=2000)
    assert feed.state.values.keys() == {b"t/s\0d"}


@pytest.mark.parametrize("later", ["update", "forget"])
def test_a_restart_changes_nothing(later):
    feed, same = Feed(retention_ms=100), Feed(retention_ms=100)
    for one in (feed, same):
        for number, name in enumerate("cabd"):
            one.put(name, ord(name), at=1000 + number)
    feed.restart()
    for one in (feed, same):
        one.put("a" if later == "update" else "e", ord("e"), at=1050 if later == "update" else 1102)
    assert feed.state.values == same.state.values
    assert feed.history("d") == same.history("d")
    assert feed.catalog.position == 5


def test_updates_that_are_too_large_together_leave_the_last_one():
    feed = Feed(max_bytes=2_000)
    feed.put("a", input="x" * 1_500)
    (entry,) = feed.put("a", output="y" * 1_500)
    assert (entry.kind, entry.reason, entry.trace_id) == ("overflow", "whole_trace", "a")
    found = feed.catalog.find("s", "a")
    assert (found["input"], len(found["output"])) == (None, 1_500)
    assert feed.put("b", input="x" * 3_000) == ()


def test_times_are_read_without_reading_the_trace():
    feed = Feed()
    feed.put("a", 1_767_603_600_000, at=1_767_603_700_000)
    assert kept_trace_times(feed.state.values[b"t/s\0a"]) == (1_767_603_700_000, 1_767_603_600_000)
