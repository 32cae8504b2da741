"""When a monitor is due: every so often from now, or by the five fields of cron in UTC. Times are milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from croniter import croniter

from streams.errors import BadRun

PERIODS: Final = {
    "every_6h": timedelta(hours=6),
    "daily": timedelta(days=1),
    "weekly": timedelta(weeks=1),
}
CRON: Final = "cron:"
MAX_LENGTH: Final = 256

_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
# R and H stand for a moment that croniter draws: another worker, or a restart, would draw another.
_DRAWN: Final = re.compile(r"(?<![A-Z])[RH](?![A-Z])", re.IGNORECASE)


def check_cadence(cadence: str) -> str:
    """Return the cadence as it is kept: without needless spaces.

    Raises:
        BadRun: it is none, or is never due.
    """
    if cadence in PERIODS:
        return cadence
    if not cadence.startswith(CRON) or len(cadence) > MAX_LENGTH:
        raise BadRun(f"the cadence {cadence[:80]!r} is none of {', '.join(PERIODS)} and {CRON}<five fields>")
    fields = cadence.removeprefix(CRON).split()
    if len(fields) != 5:
        raise BadRun(f"{cadence!r} has {len(fields)} fields, expected five: minute, hour, day, month, day of week")
    if any(_DRAWN.search(field) for field in fields) or not cadence.isascii():
        raise BadRun(f"{cadence!r} has a field that names no fixed time: take numbers, ranges, steps and names of days")
    kept = CRON + " ".join(fields)
    next_time(kept, 0)
    return kept


def next_time(cadence: str, now: int) -> int:
    """Return when a checked cadence is due next, after *now*: periods that were missed are behind it.

    Raises:
        BadRun: it is never due, or is no cadence.
    """
    after = _EPOCH + now * _MILLISECOND
    if period := PERIODS.get(cadence):
        return now + period // _MILLISECOND
    try:
        due: datetime = croniter(cadence.removeprefix(CRON), after).get_next(datetime)
    except ValueError as error:  # the root of what croniter raises
        raise BadRun(f"{cadence!r} is never due: {error}") from error
    return (due - _EPOCH) // _MILLISECOND
