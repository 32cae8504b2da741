"""The fold of the candidates log: repeats, several sources, restarts."""

from streams.core.breaker import BreakerState
from streams.core.candidates import CandidateFold, CandidatePartitionState, CandidateRecord
from streams.core.model import BreakerReset, Candidate, Position
from tests.core.test_breaker import candidate

BEGINNING = CandidatePartitionState()


def record(offset: int, place: tuple[int, int], index: int = 1, session: str = "s", topic: str = "session-log", **more):
    """Return the record of a candidate from *place* (partition, offset) of a session log."""
    number = more.pop("number", offset)
    made = candidate(number, offset, session, position=Position(*place, topic), index=index, **more)
    return CandidateRecord(offset, made)


def outcomes(fold: CandidateFold, *records: CandidateRecord) -> list[str | None]:
    return [found[-1].outcome.value if found else None for found in map(fold.apply, records)]


def new(states: dict | None = None, position: CandidatePartitionState = BEGINNING) -> CandidateFold:
    return CandidateFold(position, (states or {}).get)


def test_a_position_not_beyond_the_last_one_of_its_source_is_a_repeat():
    fold = new()
    found = outcomes(
        fold,
        record(0, (0, 5)),
        record(1, (0, 5)),
        record(2, (0, 4)),
        record(3, (0, 5), index=0),
        record(4, (0, 5), session="a"),
    )
    assert found == ["posted", None, None, None, None]
    assert fold.position == 5


def test_the_order_within_a_source_is_offset_session_index():
    found = outcomes(
        new(),
        record(0, (0, 5), breaker_max_notices=9),
        record(1, (0, 5), index=2, breaker_max_notices=9),
        record(2, (0, 5), session="t", index=0, breaker_max_notices=9),
        record(3, (0, 6), session="a", index=0, breaker_max_notices=9),
    )
    assert found == ["posted"] * 4


def test_sources_are_told_apart_by_topic_and_partition():
    found = outcomes(
        new(),
        record(0, (0, 5), breaker_max_notices=9),
        record(1, (1, 5), breaker_max_notices=9),
        record(2, (0, 5), topic="other-log", breaker_max_notices=9),
    )
    assert found == ["posted"] * 3


def test_projects_have_breakers_of_their_own():
    fold = new()
    outcomes(fold, *(record(number, (0, number)) for number in range(3)))
    reset = CandidateRecord(3, BreakerReset("other", 0))
    assert [entry.reason for entry in fold.apply(reset)] == ["was_closed"]
    assert fold.get("p").tripped
    assert sorted(fold.flush()) == ["other", "p"]
    assert fold.flush() == {}


def test_a_reset_on_the_log_opens_the_way():
    fold = new()
    assert outcomes(fold, *(record(number, (0, number)) for number in range(4)))[2:] == ["needs_human", "suppressed"]
    (entry,) = fold.apply(CandidateRecord(4, BreakerReset("p", 99)))
    assert (entry.reason, entry.time) == ("was_tripped", 3000)
    assert outcomes(fold, record(5, (0, 5))) == ["posted"]


def test_restarts_at_any_point_change_nothing():
    records = [record(number, (0, number), capture_case=True) for number in range(8)]
    whole = new()
    expected = [whole.apply(item) for item in records]
    for cut in range(9):
        first = new()
        outputs = [first.apply(item) for item in records[:cut]]
        second = new(first.flush(), first.state)
        outputs += [second.apply(item) for item in records[cut:]]
        assert outputs == expected
        assert (second.get("p"), second.state) == (whole.get("p"), whole.state)


def test_a_project_stored_beyond_the_position_puts_out_nothing_until_it_is_caught_up():
    records = [record(number, (0, number)) for number in range(4)]
    whole = new()
    expected = [whole.apply(item) for item in records]
    ahead = new()
    for item in records[:3]:
        ahead.apply(item)
    again = new(ahead.flush())
    assert [again.apply(item) for item in records] == [(), (), (), expected[3]]
    assert (again.get("p"), again.state) == (whole.get("p"), whole.state)


def test_a_reset_read_twice_resets_once():
    reset = CandidateRecord(1, BreakerReset("p", 0))
    fold = new()
    outcomes(fold, record(0, (0, 0)))
    fold.apply(reset)
    states = fold.flush()
    again = new(states)
    assert [again.apply(record(0, (0, 0))), again.apply(reset)] == [(), ()]
    assert again.get("p") == BreakerState(offset=1)


def test_the_project_of_a_record_is_what_its_breaker_goes_by():
    assert [record(0, (0, 0)).project, CandidateRecord(1, BreakerReset("q", 0)).project] == ["p", "q"]
    assert isinstance(record(0, (0, 0)).body, Candidate)
