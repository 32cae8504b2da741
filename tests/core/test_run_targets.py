"""What eval runs go over: filters, sessions by their traces, sampling."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.model import ScoreTarget, TraceStatus
from streams.core.run_targets import (
    ALLOWED,
    Filters,
    TraceFacts,
    check_filters,
    check_sampling,
    facts,
    merged,
    pick_sessions,
    pick_traces,
    sample,
    session_matches,
    trace_matches,
)
from streams.errors import BadRun

TRACE = TraceFacts("t1", "s1", "p", 1000, TraceStatus.COMPLETED, "Book a Flight", "anna", ("beta", "eu"))
WHOLE = {
    "trace_id": "t1",
    "session_id": "s1",
    "project": "p",
    "started_at": 1000,
    "status": "COMPLETED",
    "name": "Book a Flight",
    "user_id": "anna",
    "tags": ["beta", "eu"],
}
IDS = st.lists(st.text(max_size=5), unique=True, max_size=40)


def test_facts_of_a_whole_trace():
    assert facts({**WHOLE, "spans": [], "input": None}) == TRACE


def test_an_update_overwrites_and_unites():
    update = TraceFacts("t1", "s1", "p", 900, TraceStatus.ERROR, "again", None, ("us", "eu"))
    known = merged(merged(None, TRACE), update)
    assert known == TraceFacts("t1", "s1", "p", 900, TraceStatus.ERROR, "again", "anna", ("beta", "eu", "us"))
    assert merged(known, update._replace(user_id="ben")).user_id == "ben"


@pytest.mark.parametrize(
    ("filters", "holds"),
    [
        (Filters(), True),
        (Filters(date_from=1000, date_to=1001), True),
        (Filters(date_from=1001), False),
        (Filters(date_to=1000), False),
        (Filters(date_from=0), True),
        (Filters(date_to=0), False),
        (Filters(status=TraceStatus.COMPLETED), True),
        (Filters(status=TraceStatus.ERROR), False),
        (Filters(session_id="s1"), True),
        (Filters(session_id="s2"), False),
        (Filters(user_id="anna"), True),
        (Filters(user_id="Anna"), False),
        (Filters(tags=("none", "eu")), True),
        (Filters(tags=("none",)), False),
        (Filters(name="FLIGHT"), True),
        (Filters(name="a  flight"), False),
        (Filters(trace_ids=("t0", "t1")), True),
        (Filters(trace_ids=("t0",)), False),
        (Filters(session_ids=("s1",)), True),
        (Filters(session_ids=("s0",)), False),
        (Filters(name="book", user_id="ben"), False),
    ],
)
def test_filters_of_one_trace(filters, holds):
    assert trace_matches(TRACE, filters) is holds


@pytest.mark.parametrize(
    ("filters", "holds"),
    [
        (Filters(), True),
        (Filters(has_error=True), True),
        (Filters(has_error=False), False),
        (Filters(min_trace_count=3), True),
        (Filters(min_trace_count=4), False),
        (Filters(user_id="ben", min_trace_count=1), True),
        (Filters(user_id="ben", min_trace_count=2), False),
        (Filters(user_id="ben", has_error=False), True),
        (Filters(user_id="carl"), False),
        (Filters(date_from=3000, has_error=True), True),
    ],
)
def test_filters_of_a_session_look_at_its_matching_traces(filters, holds):
    session = [
        TRACE,
        TRACE._replace(trace_id="t2", started_at=2000, user_id="ben"),
        TRACE._replace(trace_id="t3", started_at=3000, status=TraceStatus.ERROR),
    ]
    assert session_matches(session, filters) is holds


def test_traces_of_the_project_in_the_order_they_started():
    found = [TRACE, TRACE._replace(trace_id="t0"), TRACE._replace(trace_id="t2", started_at=1)]
    other = TRACE._replace(trace_id="x", project="q")
    assert [trace.trace_id for trace in pick_traces([*found, other], "p", Filters())] == ["t2", "t0", "t1"]


def test_a_session_belongs_to_the_project_of_its_latest_trace():
    moved = [TRACE, TRACE._replace(trace_id="t2", started_at=2000, project="q")]
    other = TRACE._replace(trace_id="t3", session_id="s2", started_at=500)
    assert pick_sessions([*moved, other], "p", Filters()) == ("s2",)
    assert pick_sessions([*reversed(moved), other], "q", Filters()) == ("s1",)
    assert pick_sessions([TRACE, other], "p", Filters()) == ("s2", "s1")


@pytest.mark.parametrize(
    ("filters", "target", "message"),
    [
        (Filters(status=TraceStatus.ERROR), ScoreTarget.SESSION, "a run over a SESSION has no filter status; it can"),
        (Filters(has_error=False), ScoreTarget.TRACE, "a run over a TRACE has no filter has_error"),
        (Filters(session_ids=("s",)), ScoreTarget.TRACE, "a run over a TRACE has no filter session_ids"),
        (Filters(trace_ids=("t",), name="x"), ScoreTarget.TRACE, "trace_ids name what to go over: leave out name"),
        (Filters(date_from=5, date_to=5), ScoreTarget.TRACE, "nothing starts at or after 5 and before 5"),
        (Filters(min_trace_count=0), ScoreTarget.SESSION, "min_trace_count is 0, expected 1 or more"),
    ],
)
def test_filters_that_a_run_cannot_have(filters, target, message):
    with pytest.raises(BadRun, match=message):
        check_filters(filters, target)


def test_filters_that_a_run_can_have():
    everything = {"date_from": 0, "date_to": 5, "user_id": "u", "tags": ("a",), "has_error": False}
    check_filters(Filters(**everything, min_trace_count=2), ScoreTarget.SESSION)
    check_filters(Filters(session_ids=("s",)), ScoreTarget.SESSION)
    for target in ScoreTarget:
        check_filters(Filters(), target)
        for name in ALLOWED[target]:
            check_filters(replace(Filters(), **{name: 1}), target)


@pytest.mark.parametrize(
    ("targets", "rate", "count"),
    [(10, 0.0, 0), (10, 0.05, 1), (10, 0.39, 3), (10, 1.0, 10), (0, 1.0, 0), (1, 0.001, 1), (200, 0.5, 100)],
)
def test_how_many_are_taken(targets, rate, count):
    assert len(sample([str(number) for number in range(targets)], rate, "run")) == count


@given(IDS, st.floats(0, 1), st.text(max_size=5), st.randoms())
def test_a_run_takes_the_same_again_in_whatever_order_they_are_found(ids, rate, run_id, chance):
    taken = sample(ids, rate, run_id)
    assert sample(ids, rate, run_id) == taken
    assert list(taken) == [name for name in ids if name in taken]
    mixed = chance.sample(ids, len(ids))
    assert set(sample(mixed, rate, run_id)) == set(taken)


def test_other_runs_take_others_and_all_get_their_turn():
    ids = [f"trace-{number}" for number in range(100)]
    counts = dict.fromkeys(ids, 0)
    for run in range(1000):
        for name in sample(ids, 0.1, f"run-{run}"):
            counts[name] += 1
    # 100 expected each, standard deviation 9.5: 5 of them either way.
    assert all(52 <= count <= 148 for count in counts.values())


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan, math.inf])
def test_what_is_no_sampling_rate(rate):
    with pytest.raises(BadRun, match=r"expected a number from 0 \(nothing\) to 1 \(everything\)"):
        check_sampling(rate)


def test_what_is_a_sampling_rate():
    for rate in (0, 0.5, 1):
        check_sampling(rate)
