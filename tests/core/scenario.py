"""Makes the story of one session short to write: what came, when, and what the core said to it."""

from collections.abc import Iterable

from streams.core import session
from streams.core.model import (
    Candidate,
    EvalRequest,
    JournalEntry,
    Notice,
    Position,
    Report,
    Score,
    ScoreSource,
    ScoreStatus,
    SessionOutput,
    Trace,
    TraceStatus,
    TurnSettled,
)
from streams.core.rules import Rules
from streams.core.session import RulesChanged, SessionEvent, Tick
from streams.core.state import SessionState

ANNOTATION = ScoreSource.ANNOTATION
FAILED = ScoreStatus.FAILED
PENDING = ScoreStatus.PENDING
NAMES = {
    Report: "report",
    Candidate: "candidate",
    Notice: "notice",
    EvalRequest: "request",
    TurnSettled: "settled",
    JournalEntry: "journal",
}


def ms(at: float) -> int:
    """Return *at* seconds of story time in the core's unit."""
    return round(at * 1000)


def make_trace(trace_id: str, at: float = 0, **changes) -> Trace:
    """Return a completed trace that started at *at* seconds."""
    return Trace(trace_id, "default", TraceStatus.COMPLETED, ms(at))._replace(**changes)


def make_score(name: str, value: float | None, trace: str | None = None, **changes) -> Score:
    """Return a score; one without value has failed unless *changes* say otherwise."""
    status = ScoreStatus.FAILED if value is None else ScoreStatus.SUCCESS
    score_id = f"{name}/{trace or 'none'}"
    return Score(score_id, trace, name, value, status)._replace(**changes)


class Story:
    """One session under `session.step`; times are seconds, and every call returns the outputs of its step."""

    def __init__(self, session_id: str = "s", **rules) -> None:
        self.session_id = session_id
        self.rules = Rules(**rules)
        self.state: SessionState | None = None
        self.now = 0.0
        self.offset = -1
        self.outputs: list[SessionOutput] = []

    def trace(self, trace_id: str, at: float | None = None, started: float | None = None, **changes):
        at = self.now if at is None else at
        return self.event(make_trace(trace_id, at if started is None else started, **changes), at)

    def score(self, name: str, value: float | None, trace: str | None = None, at: float | None = None, **changes):
        changes.setdefault("score_id", f"{name}/{trace or 'none'}/{self.offset + 1}")
        changes.setdefault("created_at", ms(self.now if at is None else at))
        return self.event(make_score(name, value, trace, **changes), at)

    def tier1(self, trace: str, completion: float | None, coherence: float | None = 0.9, at: float | None = None):
        """Score both tier-1 metrics of *trace*."""
        first = self.score("task_completion", completion, trace, at)
        return first + self.score("coherence", coherence, trace, at)

    def turn(self, trace_id: str, completion: float | None, coherence: float | None = 0.9, at: float | None = None):
        """Announce a trace that ends its turn, and score tier 1."""
        return self.trace(trace_id, at) + self.tier1(trace_id, completion, coherence)

    def tick(self, as_of: float):
        """Tick at *as_of*; the log's clock moves there too."""
        return self.event(Tick(ms(as_of)), max(self.now, as_of))

    def switch(self, at: float | None = None, **rules):
        self.rules = Rules(**rules)
        return self.event(RulesChanged(), at)

    def event(self, body, at: float | None = None) -> tuple[SessionOutput, ...]:
        self.now = self.now if at is None else at
        self.offset += 1
        event = SessionEvent(self.session_id, ms(self.now), Position(0, self.offset), body)
        self.state, outputs = session.step(self.state, event, self.rules)
        self.outputs += outputs
        return outputs

    @property
    def reports(self) -> list[Report]:
        return of(Report, self.outputs)

    @property
    def journal(self) -> list[tuple[str, str]]:
        return journaled(self.outputs)


def of(kind: type, outputs: Iterable[SessionOutput]) -> list:
    """Return the outputs of one kind."""
    return [item for item in outputs if isinstance(item, kind)]


def journaled(outputs: Iterable[SessionOutput]) -> list[tuple[str, str]]:
    """Return (kind, reason) of every journal entry."""
    return [(item.kind.value, item.reason) for item in of(JournalEntry, outputs)]


def brief(outputs: Iterable[SessionOutput]) -> list[tuple]:
    """Return outputs as short tuples, in their order: enough to assert a whole step in one line."""
    return [_brief(item) for item in outputs]


def _brief(item: SessionOutput) -> tuple:
    match item:
        case Report():
            found = (item.turn_id, item.decision.value)
        case Candidate() | Notice():
            notice = item.notice if isinstance(item, Candidate) else item
            found = (notice.severity.value, *notice.signatures)
        case EvalRequest():
            found = (item.tier, item.attempt, item.trace_ids, item.metrics)
        case TurnSettled():
            found = (item.turn_id, item.outcome.value, item.reason)
        case JournalEntry():
            found = (item.kind.value, item.reason)
        case _:
            found = ()
    return (NAMES.get(type(item), type(item).__name__), *found)


def found(report: Report) -> list[tuple[str, str | None, float | None, tuple[str, ...]]]:
    """Return each score of a report as (metric, trace, value, conditions)."""
    return [
        (item.metric, item.trace_id, item.value, tuple(condition.value for condition in item.conditions))
        for item in report.scores
    ]
