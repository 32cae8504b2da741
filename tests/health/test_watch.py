"""What counts as standing still: every time is an argument, nothing sleeps."""

import pytest

from streams.health.watch import Findings, Seen, Watch

WARN_S, EXIT_S = 30.0, 300.0
NOTHING = Findings[str]()


@pytest.fixture
def watch() -> Watch[str]:
    return Watch(WARN_S, EXIT_S)


def looks(watch: Watch[str], start: float, stop: float, **seen: Seen) -> list[tuple[float, Findings[str]]]:
    """Look every five seconds; return what was found, and when."""
    times = [start + 5 * number for number in range(int((stop - start) / 5) + 1)]
    found = [(now, watch.look(now, seen)) for now in times]
    return [(now, item) for now, item in found if item != NOTHING]


def test_records_that_wait_are_said_once_then_are_overdue(watch: Watch[str]) -> None:
    found = looks(watch, 1000, 1310, a=Seen(7, 9))
    assert found == [
        (1030, Findings(stalled=("a",))),
        (1300, Findings(overdue=("a",))),
        (1305, Findings(overdue=("a",))),
        (1310, Findings(overdue=("a",))),
    ]


def test_nothing_waits_nothing_stalls(watch: Watch[str]) -> None:
    assert looks(watch, 0, 10_000, a=Seen(7, 7)) == []
    assert watch.look(10_005, {"a": Seen(7, 8)}) == NOTHING, "the wait begins when there is something to wait"
    assert looks(watch, 10_010, 10_025, a=Seen(7, 8)) == []
    assert watch.look(10_030, {"a": Seen(7, 8)}) == Findings(stalled=("a",))


def test_one_record_dealt_with_is_progress_however_large_the_backlog(watch: Watch[str]) -> None:
    for number in range(1000):
        assert watch.look(25.0 * number, {"a": Seen(number, 10**9)}) == NOTHING
    assert watch.known["a"].progressed == 25.0 * 999
    assert watch.known["a"].seen.lag == 10**9 - 999


def test_moving_again_is_said_once(watch: Watch[str]) -> None:
    looks(watch, 0, 40, a=Seen(7, 9))
    assert watch.known["a"].is_stalled
    assert watch.look(45, {"a": Seen(8, 9)}) == Findings(moving=("a",))
    assert looks(watch, 50, 70, a=Seen(8, 9)) == []
    assert watch.look(75, {"a": Seen(8, 9)}) == Findings(stalled=("a",))


def test_what_is_revoked_is_forgotten(watch: Watch[str]) -> None:
    looks(watch, 0, 40, a=Seen(7, 9))
    assert watch.look(45, {}) == Findings(moving=("a",))
    assert watch.known == {}
    assert looks(watch, 50, 75, a=Seen(7, 9)) == []


def test_recovery_does_not_count_but_does_not_excuse_either(watch: Watch[str]) -> None:
    """A state that is built again and again from the same position stands still."""
    assert looks(watch, 0, 20, a=Seen(7, 9)) == []
    for now in range(25, 1000, 5):
        assert watch.look(now, {}, away=["a"]) == NOTHING
    assert watch.known["a"].seen.lag == 2, "its lag stays in sight"
    assert watch.look(1000, {"a": Seen(7, 9)}) == NOTHING
    assert watch.look(1005, {"a": Seen(7, 9)}) == Findings(stalled=("a",))


def test_a_first_recovery_is_not_known_yet(watch: Watch[str]) -> None:
    assert watch.look(0, {}, away=["a"]) == NOTHING
    assert watch.known == {}


def test_a_broker_that_is_away_excuses(watch: Watch[str]) -> None:
    looks(watch, 0, 25, a=Seen(7, 9))
    for now in range(30, 5000, 5):
        watch.excuse(now)
    assert looks(watch, 5000, 5020, a=Seen(7, 9)) == []


def test_a_broker_that_goes_away_does_not_mend_a_stall(watch: Watch[str]) -> None:
    looks(watch, 0, 30, a=Seen(7, 9))
    watch.excuse(35)
    assert watch.look(40, {"a": Seen(7, 9)}) == NOTHING, "said already; nothing has moved since"
    assert watch.known["a"].is_stalled
    assert watch.look(45, {"a": Seen(8, 9)}) == Findings(moving=("a",))


def test_a_watcher_that_did_not_run_blames_nobody(watch: Watch[str]) -> None:
    """A laptop that slept, a process that was stopped: the hour is not the stage's."""
    looks(watch, 0, 20, a=Seen(7, 9))
    assert looks(watch, 3600, 3625, a=Seen(7, 9)) == []
    assert watch.look(3630, {"a": Seen(7, 9)}) == Findings(stalled=("a",))


def test_held_back_by_a_neighbour_that_moves(watch: Watch[str]) -> None:
    """Inputs are read by record time: one that is ahead waits, for as long as the others take."""
    for now in range(0, 1000, 5):
        backlog = Seen(now, 10_000, is_out=True, takes_turns_with="ingest")
        ahead = Seen(7, 9, takes_turns_with="ingest")
        assert watch.look(now, {"backlog": backlog, "ahead": ahead}) == NOTHING
    # Its turn comes: from now on it is its own business.
    ahead = Seen(7, 9, is_out=True, takes_turns_with="ingest")
    for now in range(1000, 1025, 5):
        assert watch.look(now, {"backlog": Seen(now, 10_000, takes_turns_with="ingest"), "ahead": ahead}) == NOTHING
    found = watch.look(1025, {"backlog": Seen(1025, 10_000, takes_turns_with="ingest"), "ahead": ahead})
    assert found == Findings(stalled=("ahead",))


def test_a_stage_whose_every_input_stands_still_stalls(watch: Watch[str]) -> None:
    hung = Seen(5, 9, is_out=True, takes_turns_with="ingest")
    waiting = Seen(7, 9, takes_turns_with="ingest")
    assert looks(watch, 0, 30, hung=hung, waiting=waiting) == [(30, Findings(stalled=("hung", "waiting")))]


def test_other_stages_hold_nobody_back(watch: Watch[str]) -> None:
    for now in range(0, 30, 5):
        assert watch.look(now, {"log": Seen(7, 9), "input": Seen(now, 99, takes_turns_with="ingest")}) == NOTHING
    assert watch.look(30, {"log": Seen(7, 9)}) == Findings(stalled=("log",))


def test_a_topic_made_again_has_no_lag(watch: Watch[str]) -> None:
    assert looks(watch, 0, 1000, a=Seen(70, 3)) == []
    assert watch.known["a"].seen.lag == 0


def test_never_overdue_when_told_so() -> None:
    watch = Watch[str](WARN_S, 0)
    assert looks(watch, 0, 100_000, a=Seen(7, 9)) == [(30, Findings(stalled=("a",)))]
