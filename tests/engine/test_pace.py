from hypothesis import given
from hypothesis import strategies as st

from streams.engine.pace import Head, slack_ms, time_limits


def at(next_ms: int | None, *, last_ms: int | None = None, behind: bool = True, waited_s: float = 0.0) -> Head:
    return Head(next_ms, last_ms, behind, waited_s)


def limits(**heads: Head) -> dict[str, int | None]:
    return time_limits(heads, slack_ms=10, patience_s=5.0)


def test_alone_there_is_no_limit():
    assert limits(a=at(100)) == {"a": None}


def test_each_waits_for_the_slowest_of_the_others():
    assert limits(a=at(100), b=at(200), c=at(300)) == {"a": 210, "b": 110, "c": 110}


def test_a_partition_without_backlog_holds_nobody_up():
    assert limits(a=at(100), b=at(None, behind=False)) == {"a": None, "b": 110}


def test_records_on_their_way_hold_the_others_where_it_was():
    assert limits(a=at(100), b=at(None, last_ms=50)) == {"a": 60, "b": 110}


def test_nothing_is_handed_out_before_the_other_has_been_heard_of():
    assert limits(a=at(100), b=at(None))["a"] == -1


def test_but_patience_ends():
    assert limits(a=at(100), b=at(None, waited_s=5.0))["a"] is None


def test_the_further_behind_the_more_at_once():
    def slack(now_ms: int) -> int:
        return slack_ms([at(100), at(300), at(None)], now_ms, least_ms=10, most_ms=1000)

    assert [slack(now_ms) for now_ms in (0, 110, 120, 300, 2099, 2100, 9000)] == [10, 10, 10, 100, 999, 1000, 1000]
    assert slack_ms([at(None)], 500, least_ms=10, most_ms=1000) == 10


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_the_earliest_may_always_go_on(times: list[int]):
    found = time_limits(dict(enumerate(map(at, times))), slack_ms=0, patience_s=5.0)
    earliest = min(times)
    limit = found[times.index(earliest)]
    assert limit is None or limit >= earliest
