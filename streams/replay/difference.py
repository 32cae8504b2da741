"""What two replays of the same records say differently: notices gained, lost, changed, earlier or later."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from streams.core.model import Notice


class Kind(StrEnum):
    """How a notice of the second replay stands to the first."""

    GAINED = "gained"
    LOST = "lost"
    CHANGED = "changed"
    EARLIER = "earlier"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: the notice of the first replay, of the second, or both."""

    kind: Kind
    before: Notice | None
    after: Notice | None

    @property
    def notice(self) -> Notice:
        """The notice as the later-named replay has it, or as the other had it where it was lost."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def shift_ms(self) -> int:
        """How much later the second is, in milliseconds; negative when it is earlier."""
        return self.after.time - self.before.time if self.after and self.before else 0


def compare(before: Iterable[Notice], after: Iterable[Notice]) -> tuple[list[Difference], int]:
    """Return the differences in the order of their times, and how many notices are the same in both.

    A notice of the same turn has the same id whatever the settings: it is the same, or changed in severity or
    signatures. Of the others, one lost and one gained in the same session with a common signature are one problem
    told earlier or later; the nearest come together.
    """
    first, second = ({item.notice_id: item for item in items} for items in (before, after))
    both = [(item, second[notice_id]) for notice_id, item in first.items() if notice_id in second]
    found = [difference for pair in both if (difference := _of_one_turn(*pair)) is not None]
    same = len(both) - len(found)
    lost = [item for notice_id, item in first.items() if notice_id not in second]
    gained = [item for notice_id, item in second.items() if notice_id not in first]
    found += _moved(lost, gained)
    return sorted(found, key=lambda item: (item.notice.time, item.notice.session_id, item.notice.turn_id)), same


def _of_one_turn(before: Notice, after: Notice) -> Difference | None:
    if (before.severity, before.signatures) != (after.severity, after.signatures):
        return Difference(Kind.CHANGED, before, after)
    if before.time == after.time:
        return None
    return Difference(Kind.EARLIER if after.time < before.time else Kind.LATER, before, after)


def _moved(lost: list[Notice], gained: list[Notice]) -> list[Difference]:
    """Pair what one replay says at one turn and the other at another; what stays alone was lost or gained."""
    open_by_lane: dict[tuple[str, str], list[Notice]] = defaultdict(list)
    for item in gained:
        open_by_lane[item.session_id, item.lane].append(item)
    found: list[Difference] = []
    for item in lost:
        others = open_by_lane[item.session_id, item.lane]
        fitting = [other for other in others if set(other.signatures) & set(item.signatures)]
        if not fitting:
            found.append(Difference(Kind.LOST, item, None))
            continue
        nearest = min(fitting, key=lambda other: abs(other.time - item.time))
        others.remove(nearest)
        found.append(Difference(Kind.EARLIER if nearest.time < item.time else Kind.LATER, item, nearest))
    return found + [Difference(Kind.GAINED, None, item) for others in open_by_lane.values() for item in others]
