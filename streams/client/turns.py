"""Which turns a client has published, and which of them are in flight."""

import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, Final, NamedTuple

REMEMBERED: Final = 10_000
"""Sessions and turns kept; the oldest is forgotten for a newer one."""


class Turn(NamedTuple):
    """A turn that was published: its id, when, and what is known of its end."""

    session_id: str
    turn_id: str
    published_at: int
    turn_index: int | None = None
    ends_turn: bool = True


class Turns:
    """Follows what is published and what has landed. May be told from any thread."""

    def __init__(self, evaluated_statuses: Collection[str]) -> None:
        self._evaluated = frozenset(evaluated_statuses)
        self._lock = threading.Lock()
        self._last: OrderedDict[str, Turn] = OrderedDict()
        self._announced: OrderedDict[str, None] = OrderedDict()
        self._published: OrderedDict[str, Turn] = OrderedDict()
        self._in_flight: OrderedDict[str, Turn] = OrderedDict()

    def add_trace(
        self, session_id: str, trace_id: str, status: str, at: int, turn_index: int | None, *, ends_turn: bool
    ) -> Turn | None:
        """Note a trace that is about to be published; one whose status is not evaluated makes no turn."""
        if status not in self._evaluated:
            return None
        with self._lock:
            _remember(self._announced, session_id, None)
            turn = Turn(session_id, f"{session_id}/{trace_id}", at, turn_index, ends_turn)
            before = self._last.get(session_id)
            if before is not None and not before.ends_turn and before.turn_index == turn_index:
                # The turn was open: it is named after the trace that closes it, which this one may be.
                self._in_flight.pop(before.turn_id, None)
            self._add(turn)
            return turn

    def add_score(self, session_id: str, trace_id: str, at: int) -> Turn | None:
        """Note a score that is about to be published: where nobody announces traces, it makes its trace's turn."""
        with self._lock:
            if session_id in self._announced:
                return None
            turn = Turn(session_id, f"{session_id}/{trace_id}", at)
            self._add(turn)
            return turn

    def withdraw(self, turn: Turn) -> None:
        """Forget a turn: it was not published after all."""
        with self._lock:
            self._published.pop(turn.turn_id, None)
            self._in_flight.pop(turn.turn_id, None)
            if self._last.get(turn.session_id) is turn:
                earlier = (item for item in reversed(self._published.values()) if item.session_id == turn.session_id)
                before = next(earlier, None)
                if before is None:
                    del self._last[turn.session_id]
                else:
                    self._last[turn.session_id] = before

    def last(self, session_id: str) -> str | None:
        """Return the turn published last for a session, or none."""
        with self._lock:
            turn = self._last.get(session_id)
            return None if turn is None else turn.turn_id

    def find(self, session_id: str, turn_id: str) -> Turn:
        """Return a turn; one that this client did not publish may be of any time."""
        with self._lock:
            return self._published.get(turn_id) or Turn(session_id, turn_id, 0)

    def in_flight(self) -> dict[str, tuple[str, ...]]:
        """Return session -> turns that have not landed, oldest first."""
        with self._lock:
            found: dict[str, tuple[str, ...]] = {}
            for turn in self._in_flight.values():
                found[turn.session_id] = (*found.get(turn.session_id, ()), turn.turn_id)
            return found

    def waiting(self) -> list[Turn]:
        """Return the turns that have not landed."""
        with self._lock:
            return list(self._in_flight.values())

    def landed(self, turn_id: str) -> None:
        """Note that a turn's diagnosis is there."""
        with self._lock:
            self._in_flight.pop(turn_id, None)

    def _add(self, turn: Turn) -> None:
        _remember(self._last, turn.session_id, turn)
        if turn.turn_id in self._published:
            return
        _remember(self._published, turn.turn_id, turn)
        _remember(self._in_flight, turn.turn_id, turn)


def _remember(kept: OrderedDict[str, Any], key: str, value: object) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
