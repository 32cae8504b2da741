"""Decides how far each input partition may be read, so that a backlog arrives by record time."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Head:
    """How far one partition has been read.

    next_ms: time of its next record at hand; None while none is at hand.
    last_ms: time of the last record that was handed out; None before the first.
    behind: whether the broker holds more than has been read.
    waited_s: how long no record has been at hand.
    """

    next_ms: int | None
    last_ms: int | None
    behind: bool
    waited_s: float


# Before any record: the bound of a partition nothing is known of yet.
_NOTHING = -1


def slack_ms(heads: Iterable[Head], now_ms: int, least_ms: int, most_ms: int) -> int:
    """Return how far partitions may be apart: half of how far the last one is behind now, within the bounds.

    A reader that is handed one second's records at a time keeps up only while it takes less than
    a second for them; the further it falls behind, the more it gets at once.
    """
    earliest = min((head.next_ms for head in heads if head.next_ms is not None), default=now_ms)
    return max(least_ms, min(most_ms, (now_ms - earliest) // 2))


def time_limits(heads: Mapping[_Key, Head], *, slack_ms: int, patience_s: float) -> dict[_Key, int | None]:
    """Return the latest record time each partition may hand out; None means no limit.

    A partition may be ahead of the others that have a backlog by slack_ms at most. One
    that is behind but has nothing at hand (its records are on their way) holds the others
    where it was last, but not for longer than patience_s: a broker that does not answer
    for one partition must not stop the rest.
    """
    bounds = sorted(
        (bound, index) for index, head in enumerate(heads.values()) if (bound := _bound(head, patience_s)) is not None
    )
    limits: dict[_Key, int | None] = {}
    for index, key in enumerate(heads):
        earliest = next((bound for bound, owner in bounds if owner != index), None)
        limits[key] = earliest
        if earliest is not None and earliest != _NOTHING:
            limits[key] = earliest + slack_ms
    return limits


def _bound(head: Head, patience_s: float) -> int | None:
    """Return the earliest time the partition may still come with; None when it has no backlog."""
    if head.next_ms is not None:
        return head.next_ms
    if not head.behind or head.waited_s >= patience_s:
        return None
    return _NOTHING if head.last_ms is None else head.last_ms
