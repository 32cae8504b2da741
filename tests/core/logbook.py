"""Writes a partition of the session log in a test, and folds it as a worker would, crashes included."""

from collections.abc import Iterable

from streams.core.log import LogFold, LogRecord, PartitionState, Source
from streams.core.model import Candidate, EvalRequest, JournalEntry, Report, SessionOutput, TurnSettled
from streams.core.rules import Rules
from streams.core.session import Tick
from streams.core.state import SessionState
from tests.core.scenario import make_score, make_trace, ms


class Log:
    """Records in their order; times are seconds. The first record holds the rules."""

    def __init__(self, **rules) -> None:
        self.records: list[LogRecord] = []
        self.now = 0.0
        self.rules(**rules)

    def rules(self, at: float | None = None, **rules) -> LogRecord:
        return self._append(Rules(**rules), at)

    def tick(self, as_of: float, at: float | None = None, stuck: tuple[str, ...] = ()) -> LogRecord:
        return self._append(Tick(ms(as_of), stuck), as_of if at is None else at)

    def trace(self, session_id: str, trace_id: str, at: float | None = None, **changes) -> LogRecord:
        started = self.now if at is None else at
        return self._append(make_trace(trace_id, started)._replace(**changes), at, session_id)

    def score(self, session_id: str, name: str, value: float | None, trace: str | None = None, at=None, **changes):
        changes.setdefault("score_id", f"score-{len(self.records)}")
        return self._append(make_score(name, value, trace, **changes), at, session_id)

    def turn(self, session_id: str, trace_id: str, value: float, at: float | None = None) -> None:
        """A trace that ends its turn, and both its tier-1 scores."""
        self.trace(session_id, trace_id, at)
        self.score(session_id, "task_completion", value, trace_id)
        self.score(session_id, "coherence", 0.9, trace_id)

    def __repr__(self) -> str:
        return "\n".join(["", *map(repr, self.records)])

    def _append(self, body, at: float | None, session_id: str | None = None) -> LogRecord:
        self.now = self.now if at is None else at
        offset = len(self.records)
        source = Source("in", "1", 0, offset) if session_id is not None else None
        record = LogRecord(offset, ms(self.now), body, session_id, source)
        self.records.append(record)
        return record


class Worker:
    """Folds records over a store; `save` is what a worker does at the end of a batch, in its two steps."""

    def __init__(self, states: dict[str, SessionState] | None = None, position: PartitionState | None = None) -> None:
        self.store = dict(states or {})
        self.position = position or PartitionState()
        self.fold = LogFold(0, self.position, self.store.get)
        self.fold.restore(self.store.values())
        self.outputs: list[tuple[str | None, SessionOutput]] = []

    def run(self, records: Iterable[LogRecord]) -> "Worker":
        for record in records:
            for session_id, outputs in self.fold.apply(record):
                self.outputs += [(session_id, output) for output in outputs]
        return self

    def save_states(self, only: Iterable[str] | None = None) -> "Worker":
        """Store the touched sessions (*only* some of them, when the worker dies over it)."""
        touched, _ = self.fold.flush()
        self.store.update({key: state for key, state in touched.items() if only is None or key in only})
        return self

    def save(self) -> "Worker":
        """Store the touched sessions, then the position; drop what has expired."""
        touched, expired = self.fold.flush()
        self.store.update(touched)
        self.position = self.fold.state
        for session_id in expired:
            self.store.pop(session_id, None)
        return self

    def restarted(self) -> "Worker":
        """Return the worker that takes over from what is stored."""
        return Worker(self.store, self.position)

    def state(self, session_id: str) -> SessionState | None:
        return self.fold.get(session_id)


def fold_all(records: Iterable[LogRecord]) -> Worker:
    """Fold *records* in one go."""
    return Worker().run(records)


def identity(session_id: str | None, output: SessionOutput) -> tuple:
    """Return what tells an output from every other one of its log."""
    match output:
        case Report():
            return ("report", session_id, output.lane, output.turn_id)
        case Candidate():
            return ("candidate", output.notice.notice_id)
        case EvalRequest():
            return ("request", output.run_id, output.attempt)
        case TurnSettled():
            return ("settled", output.settled_id)
        case JournalEntry():
            return ("journal", output.journal_id)
