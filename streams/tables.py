"""Every table: its changelog, the keys in it, and states as stored bytes."""

from collections.abc import Iterable, Mapping

from streams.core.breaker import BreakerState
from streams.core.candidates import CandidatePartitionState
from streams.core.eval_log import MONITORS, EvalPartitionState, EvalState
from streams.core.log import PartitionState
from streams.core.monitors import MonitorState
from streams.core.runs import RunState
from streams.core.state import SessionState
from streams.wire import decode_state, encode_state

SESSIONS, BREAKERS = "sessions", "breakers"
EVAL_RUNS = "eval-runs"
EVAL_TRACES, EVAL_SIGNALS, EVAL_REQUESTS = "eval-traces", "eval-signals", "eval-requests"
STATE_PREFIX = b"s/"
TRACE_PREFIX, REQUEST_PREFIX, ANSWERED_PREFIX, SPENDING_PREFIX = b"t/", b"r/", b"d/", b"b/"

State = SessionState | BreakerState
Place = PartitionState | CandidatePartitionState
Changes = dict[bytes, bytes | None]


def state_key(name: str) -> bytes:
    """Return the key of a session's or a project's state."""
    return _key(STATE_PREFIX, name)


def position_key(partition: int) -> bytes:
    """Return the key of a partition's position record."""
    return b"p/%d" % partition


def trace_key(session_id: str, trace_id: str) -> bytes:
    """Return the key of what evaluators keep of a trace."""
    # Ids are printable, so NUL is in none of them.
    return _key(TRACE_PREFIX, f"{session_id}\0{trace_id}")


def request_key(run_id: str, session_id: str, part: int, *, answered: bool = False) -> bytes:
    """Return the key of a request to evaluators, or of what is left of it once it is answered."""
    return _key(ANSWERED_PREFIX if answered else REQUEST_PREFIX, f"{run_id}\0{session_id}\0{part}")


def spending_key(session_id: str) -> bytes:
    """Return the key of what a session's scores have cost."""
    return _key(SPENDING_PREFIX, session_id)


def _key(prefix: bytes, name: str) -> bytes:
    return prefix + name.encode("utf-8", "surrogatepass")


def eval_state(name: str, stored: bytes) -> EvalState:
    """Read the stored state of the run or monitor that goes by *name*.

    Raises:
        UnreadableState: it is none.
    """
    return decode_state(MonitorState, stored) if name.startswith(MONITORS) else decode_state(RunState, stored)


def eval_changes(
    touched: Mapping[str, EvalState], place: EvalPartitionState, partition: int, forgotten: Iterable[str]
) -> Changes:
    """Return what one batch of the eval log writes, in the order of `changes`; its names are its keys."""
    written: Changes = {name.encode(): encode_state(state) for name, state in touched.items()}
    written[position_key(partition)] = encode_state(place)
    written.update((name.encode(), None) for name in forgotten)
    return written


def changes(touched: Mapping[str, State], place: Place, partition: int, forgotten: Iterable[str] = ()) -> Changes:
    """Return what one batch writes: states first, then the position that covers them, then what is forgotten."""
    written: Changes = {state_key(name): encode_state(state) for name, state in touched.items()}
    written[position_key(partition)] = encode_state(place)
    written.update((state_key(name), None) for name in forgotten)
    return written


__all__ = ["BREAKERS", "SESSIONS", "STATE_PREFIX", "changes", "decode_state", "position_key", "state_key"]
