"""Decides what stands still: something waits to be done, and for too long none of it was."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Seen:
    """One thing at one look.

    position, end: how far it is, and how far there is to go.
    is_out: it is being worked on now.
    takes_turns_with: those of one name may wait for each other; none for one that never waits.
    """

    position: int
    end: int
    is_out: bool = False
    takes_turns_with: str | None = None

    @property
    def lag(self) -> int:
        """How much waits; none when the end moved back, as that of a topic that was made again."""
        return max(0, self.end - self.position)


@dataclass
class Progress:
    """What is known of one thing; times in seconds of the clock that `look` is told."""

    seen: Seen
    progressed: float
    """When its position last moved, at first: when it was first seen."""
    waits_since: float
    """Since when it waits without a reason of its own."""
    is_stalled: bool = False


@dataclass(frozen=True)
class Findings(Generic[K]):
    """What a look found."""

    stalled: tuple[K, ...] = ()
    """Stand still since now: to be said once."""
    moving: tuple[K, ...] = ()
    """Stood still, and do not any more."""
    overdue: tuple[K, ...] = ()
    """Have stood still for so long that only a new start may help."""


class Watch(Generic[K]):
    """Looks at things again and again; knows no clock.

    warn_s, exit_s: how long something may wait until it is stalled, and until it is overdue; exit_s 0: never.
    """

    def __init__(self, warn_s: float, exit_s: float) -> None:
        self._warn_s = warn_s
        self._exit_s = exit_s
        self._looked: float | None = None
        self.known: dict[K, Progress] = {}

    def look(self, now: float, seen: Mapping[K, Seen], away: Collection[K] = ()) -> Findings[K]:
        """Take in what is seen at *now*.

        away: not to be seen for a while, as a partition that recovers: its wait goes on where it was when it
            comes back. Anything else that is not seen is forgotten.
        """
        if self._looked is not None and now - self._looked >= self._warn_s:
            # The watcher did not run either: a stopped process, a machine that slept.
            self.excuse(now)
        passed = 0.0 if self._looked is None else now - self._looked
        self._looked = now
        moved = {key for key, item in seen.items() if self._has_moved(key, item)}
        lively = {seen[key].takes_turns_with for key in moved} - {None}
        held = {key for key, item in seen.items() if not item.is_out and item.takes_turns_with in lively}
        fine = moved | held | {key for key, item in seen.items() if item.lag == 0}
        known = {key: self._update(now, key, item, moved, fine) for key, item in seen.items()}
        for key in away:
            if key not in known and key in self.known:
                known[key] = self.known[key]
                known[key].waits_since = min(now, known[key].waits_since + passed)
        gone = tuple(key for key, item in self.known.items() if item.is_stalled and key not in known)
        self.known = known
        return self._judge(now, fine, gone)

    def excuse(self, now: float) -> None:
        """Count nothing before *now* as waiting: nobody could have done it."""
        for item in self.known.values():
            item.waits_since = now

    def _has_moved(self, key: K, item: Seen) -> bool:
        known = self.known.get(key)
        return known is None or known.seen.position != item.position

    def _update(self, now: float, key: K, item: Seen, moved: set[K], fine: set[K]) -> Progress:
        known = self.known.get(key) or Progress(item, now, now)
        known.seen = item
        if key in moved:
            known.progressed = now
        if key in fine:
            known.waits_since = now
        return known

    def _judge(self, now: float, fine: set[K], gone: tuple[K, ...]) -> Findings[K]:
        stalled: list[K] = []
        moving = list(gone)
        overdue: list[K] = []
        for key, item in self.known.items():
            waited = now - item.waits_since
            if item.is_stalled and key in fine:
                moving.append(key)
                item.is_stalled = False
            elif not item.is_stalled and waited >= self._warn_s:
                stalled.append(key)
                item.is_stalled = True
            if 0 < self._exit_s <= waited:
                overdue.append(key)
        return Findings(tuple(stalled), tuple(moving), tuple(overdue))
