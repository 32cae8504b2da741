"""Every table: its changelog, the keys in it, and states as stored bytes."""

from collections.abc import Iterable, Mapping

from streams.core.breaker import BreakerState
from streams.core.candidates import CandidatePartitionState
from streams.core.log import PartitionState
from streams.core.state import SessionState
from streams.wire import decode_state, encode_state

SESSIONS, BREAKERS = "sessions", "breakers"
STATE_PREFIX = b"s/"

State = SessionState | BreakerState
Place = PartitionState | CandidatePartitionState
Changes = dict[bytes, bytes | None]


def state_key(name: str) -> bytes:
    """Return the key of a session's or a project's state."""
    return STATE_PREFIX + name.encode("utf-8", "surrogatepass")


def position_key(partition: int) -> bytes:
    """Return the key of a partition's position record."""
    return b"p/%d" % partition


def changes(touched: Mapping[str, State], place: Place, partition: int, forgotten: Iterable[str] = ()) -> Changes:
    """Return what one batch writes: states first, then the position that covers them, then what is forgotten."""
    written: Changes = {state_key(name): encode_state(state) for name, state in touched.items()}
    written[position_key(partition)] = encode_state(place)
    written.update((state_key(name), None) for name in forgotten)
    return written


__all__ = ["BREAKERS", "SESSIONS", "STATE_PREFIX", "changes", "decode_state", "position_key", "state_key"]
