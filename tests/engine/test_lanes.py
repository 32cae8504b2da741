import pytest
from aiokafka import ConsumerRecord
from faust.types import TP

from streams.engine import Reading, Revoked
from streams.engine.gaps import first_hole
from streams.engine.lanes import Lane

SOURCE = TP("log", 0)


def record(offset: int, time_ms: int = 0) -> ConsumerRecord:
    return ConsumerRecord("log", 0, offset, time_ms, 0, b"k", b"v", None, 1, 1, ())


def lane(start: int = 0, **reading: int) -> Lane:
    return Lane(SOURCE, Reading(**reading), start)


def test_one_batch_is_out_at_a_time():
    it = lane(max_records=2)
    it.accept([record(0), record(1), record(2)], 3)
    batch = it.take(0.0, None)
    assert batch is not None
    assert [r.offset for r in batch.records] == [0, 1]
    assert it.take(0.0, None) is None
    batch.done()
    it.settle()
    rest = it.take(0.0, None)
    assert rest is not None
    assert (rest.first_offset, rest.next_offset) == (2, 3)


def test_done_moves_what_may_be_committed():
    it = lane()
    it.accept([record(0), record(1)], 2)
    batch = it.take(0.0, None)
    assert batch is not None
    assert it.settled == 0
    batch.done()
    assert it.settled == 2


def test_what_is_published_only_settles_with_a_later_done():
    it = lane(max_records=1)
    it.accept([record(0), record(1)], 3)
    first = it.take(0.0, None)
    assert first is not None
    first.published()
    it.settle()
    second = it.take(0.0, None)
    assert second is not None
    second.published()
    it.settle()
    it.accept([], 5)
    assert it.settled == 0
    first.done()
    it.accept([], 6)
    assert it.settled == 1
    second.done()
    it.accept([], 7)
    assert it.settled == 7


def test_after_a_failure_what_was_published_is_not_waited_for():
    it = lane()
    it.accept([record(0)], 1)
    batch = it.take(0.0, None)
    assert batch is not None
    batch.published()
    it.busy = False
    it.restart(it.settled)
    it.accept([], 4)
    assert it.settled == 4


def test_transaction_markers_at_the_end_are_settled_too():
    it = lane()
    it.accept([record(0)], 2)
    batch = it.take(0.0, None)
    assert batch is not None
    assert batch.next_offset == 2
    batch.done()
    it.settle()
    it.accept([], 5)
    assert it.settled == 5


def test_markers_behind_a_batch_that_is_out_wait_for_it():
    it = lane()
    it.accept([record(0)], 1)
    batch = it.take(0.0, None)
    assert batch is not None
    it.accept([], 2)
    assert it.settled == 0
    batch.done()
    it.settle()
    assert it.settled == 2


def test_only_records_up_to_the_limit_are_handed_out():
    it = lane()
    it.accept([record(0, 10), record(1, 20), record(2, 30)], 3)
    assert it.take(0.0, 5) is None
    batch = it.take(0.0, 20)
    assert batch is not None
    assert (len(batch), batch.next_offset) == (2, 2)


def test_a_closed_lane_refuses_done():
    it = lane()
    it.accept([record(0)], 1)
    batch = it.take(0.0, None)
    assert batch is not None
    it.closed = True
    with pytest.raises(Revoked):
        batch.done()
    assert it.settled == 0


@pytest.mark.parametrize(
    ("offsets", "position", "after", "hole"),
    [
        ([5, 6, 7], 5, 8, None),
        ([], 5, 5, None),
        ([7, 8], 5, 9, (0, 5, 7)),
        ([5, 6, 9], 5, 10, (2, 7, 9)),
        ([5, 6], 5, 9, (2, 7, 9)),
        ([], 5, 7, (0, 5, 7)),
    ],
)
def test_first_hole(offsets, position, after, hole):
    assert first_hole([record(offset) for offset in offsets], position, after) == hole
