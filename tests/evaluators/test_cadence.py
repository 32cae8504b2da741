"""When monitors are due: the vectors, and what is refused when a monitor is made."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import BadRun
from streams.evaluators.cadence import PERIODS, check_cadence, next_time
from tests.core.vectors import cases

VECTORS = cases("cadence_score_vectors")
REFUSED = {"cron:* * * * * *", "cron:@daily", "cron:R R * * *", "cron:0 0 31 2 *"}
"""What the vectors take or put off, and we refuse: six fields, names for cadences, chance, dates that never come."""
NOW = 1_772_361_015_000
CADENCES = st.sampled_from([*PERIODS, *(case["normalized"] for case in VECTORS["validate"] if case["ok"])])


def ms(time):
    found = datetime.fromisoformat(time)
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


@pytest.mark.parametrize("case", VECTORS["validate"], ids=lambda case: case["cadence"])
def test_every_vector_of_what_is_a_cadence(case):
    if case["ok"] and case["cadence"] not in REFUSED:
        assert check_cadence(case["cadence"]) == case["normalized"]
    else:
        with pytest.raises(BadRun):
            check_cadence(case["cadence"])


@pytest.mark.parametrize("case", VECTORS["next_run"], ids=lambda case: f"{case['cadence']} from {case['from']}")
def test_every_vector_of_the_next_time(case):
    if case["cadence"] in REFUSED:
        with pytest.raises(BadRun):
            check_cadence(case["cadence"])
    else:
        assert next_time(check_cadence(case["cadence"]), ms(case["from"])) == ms(case["next"])


@pytest.mark.parametrize(
    ("cadence", "message"),
    [
        ("hourly", "'hourly' is none of every_6h, daily, weekly and cron:<five fields>"),
        ("cron:", "has 0 fields, expected five: minute, hour, day, month, day of week"),
        ("cron:0 0 * * * 2030", "has 6 fields"),
        ("cron:@daily", "has 1 fields"),
        ("cron:@daily @daily @daily @daily @daily", "is never due"),
        ("cron:0 0 30 2 *", "'cron:0 0 30 2 \\*' is never due"),
        ("cron:0 0 31 4,6,9,11 *", "is never due"),
        ("cron:61 * * * *", "is never due: .* out of range"),
        ("cron:r(0-10) * * * *", "names no fixed time"),
        ("cron:H/15 * * * *", "names no fixed time"),
        ("cron:0 h * * *", "names no fixed time"),
        ("cron:\u0663 * * * *", "names no fixed time"),
        ("cron:" + "1," * 1000 + "1 * * * *", "is none of"),
    ],
)
def test_what_is_refused_says_why(cadence, message):
    with pytest.raises(BadRun, match=message):
        check_cadence(cadence)


def test_names_of_days_and_months_are_no_chance():
    assert check_cadence("cron:0  3 * MAR,apr thu-FRI") == "cron:0 3 * MAR,apr thu-FRI"


@pytest.mark.parametrize(("cadence", "hours"), [("every_6h", 6), ("daily", 24), ("weekly", 168)])
def test_periods_count_from_now(cadence, hours):
    assert next_time(cadence, NOW + 7) == NOW + 7 + hours * 3_600_000


def test_a_fraction_of_a_second_before_is_before():
    assert next_time("cron:30 10 * * *", ms("2026-03-01T10:29:59.999+00:00")) == ms("2026-03-01T10:30:00+00:00")


@given(CADENCES.filter(lambda cadence: cadence not in REFUSED), st.integers(0, 4_000_000_000_000))
def test_the_next_time_is_ahead_however_much_was_missed(cadence, now):
    assert next_time(cadence, now) > now


@given(st.text(max_size=30), st.booleans())
def test_whatever_is_asked_for_is_taken_or_refused(text, as_cron):
    try:
        kept = check_cadence(f"cron:{text}" if as_cron else text)
    except BadRun:
        return
    assert check_cadence(kept) == kept


@given(st.lists(st.text("0123456789*/-,#LRHW?@MONmar()", max_size=6), min_size=5, max_size=5))
def test_whatever_the_fields_are_they_are_taken_or_refused(fields):
    try:
        kept = check_cadence("cron:" + " ".join(fields))
    except BadRun:
        return
    assert next_time(kept, NOW) > NOW
