"""The product's nouns: what comes in, what is decided, what goes out. Times are whole milliseconds since 1970, UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

DEFAULT_PROJECT = "default"
OUTCOME_METRIC = "outcome_correct"


class Condition(StrEnum):
    """A named finding about one score."""

    BREACH = "breach"
    RELATIVE = "relative"
    TREND = "trend"
    PERCENTILE = "percentile"
    STALL = "stall"
    REGRESSION = "regression"
    PACE = "pace"


class Severity(StrEnum):
    """How much attention a report deserves."""

    TREND = "trend"
    RELATIVE = "relative"
    BREACH = "breach"


class Lane(StrEnum):
    """Which series a score belongs to; each lane has its own notice state."""

    TRACE = "trace"
    SESSION = "session"


class TraceStatus(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    ERROR = "ERROR"


class ScoreStatus(StrEnum):
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    PENDING = "PENDING"


class ScoreSource(StrEnum):
    AUTOMATED = "AUTOMATED"
    ANNOTATION = "ANNOTATION"
    PROGRAMMATIC = "PROGRAMMATIC"


# By themselves, because Python 3.11 takes its time to find a member in an enum, and every step asks for these.
PENDING: Final = ScoreStatus.PENDING
TRACE_LANE: Final = Lane.TRACE


class ScoreTarget(StrEnum):
    """What a score judges, and what an eval run goes over."""

    TRACE = "TRACE"
    SESSION = "SESSION"


class DataType(StrEnum):
    NUMERIC = "NUMERIC"
    BOOLEAN = "BOOLEAN"
    CATEGORICAL = "CATEGORICAL"


class Decision(StrEnum):
    """What became of a report, and why."""

    POSTED_NEW = "posted_new"
    """It has a signature that the last report lacked: a candidate was published."""
    POSTED_AGAIN = "posted_again"
    """The same signatures as before, and the cooldown has run out: a candidate was published."""
    UNCHANGED = "unchanged"
    """Every signature is already known: nothing is published."""
    QUIET = "quiet"
    """No score has a condition, and there was none before."""
    RECOVERED = "recovered"
    """No score has a condition any more."""
    PENDING = "pending"
    """No score has a value: nothing was learned, nothing changes."""
    SHADOW = "shadow"
    """It would have been posted, but observe_only is on."""


class Outcome(StrEnum):
    """How a turn's diagnosis landed."""

    NONE = "none"
    POSTED = "posted"
    SUPPRESSED = "suppressed"
    NEEDS_HUMAN = "needs_human"
    SHADOW = "shadow"


class JournalKind(StrEnum):
    """Why an event was worth keeping."""

    RECOVERY = "recovery"
    PENDING = "pending"
    SHADOW = "shadow"
    SKIP = "skip"
    SUPPRESSED = "suppressed"
    BREAKER_RESET = "breaker_reset"
    LATE = "late"
    LATE_TRACE = "late_trace"
    OUT_OF_ORDER = "out_of_order"
    SUPERSEDED = "superseded"
    OVERFLOW = "overflow"
    UNPLACED = "unplaced"
    STUCK_INPUT = "stuck_input"
    GAP = "gap"
    HEALTH = "health"
    RUN_FAILED = "run_failed"


class Trace(NamedTuple):
    """What detection keeps of one trace; the whole trace lives in the traces topic."""

    trace_id: str
    project: str
    status: TraceStatus
    started_at: int
    ended_at: int | None = None
    turn_index: int | None = None
    ends_turn: bool = True
    input: str | None = None
    """At most 1 KiB of the input, as JSON text; kept for eval cases."""
    task: str | None = None
    """The first of its tags, at most 256 bytes: what kind of work it belongs to."""


class Score(NamedTuple):
    """One metric's result for one trace or one session."""

    score_id: str
    trace_id: str | None
    name: str
    value: float | None
    """In [0, 1], higher is better; none while pending or failed, and for CATEGORICAL."""
    status: ScoreStatus = ScoreStatus.SUCCESS
    source: ScoreSource = ScoreSource.AUTOMATED
    created_at: int = 0
    reason: str = ""
    threshold: float | None = None
    """The pass line that the score itself carries."""
    flagged_traces: tuple[str, ...] = ()
    eval_run_id: str | None = None

    @property
    def resolved(self) -> bool:
        """Whether the metric is answered: with a value, or for good without one."""
        return self.status is not PENDING


class Position(NamedTuple):
    """Where a record stands in a log."""

    partition: int
    offset: int
    topic: str = "session-log"


class ReportScore(NamedTuple):
    """One score as a report shows it."""

    metric: str
    tier: int | None
    """0 to 3; none for a metric that no tier names."""
    trace_id: str | None
    value: float | None
    status: ScoreStatus
    threshold: float
    conditions: tuple[Condition, ...] = ()
    reason: str = ""
    peak: float | None = None
    """The gate's peak after this value; tier 1 only."""
    traces_since_gain: int | None = None
    """Traces without a gain up to and including this one, before the gate starts counting anew; tier 1 only."""
    average: float | None = None
    """The slow average after this value; session lane only."""
    pace_line: float | None = None
    """What the peak should have reached by this value, where pace judged it; tier 1 only."""


class GateSnapshot(NamedTuple):
    """A metric's gate before and after a turn."""

    metric: str
    peak_before: float | None
    traces_since_gain_before: int
    peak_after: float | None
    traces_since_gain_after: int


class Report(NamedTuple):
    """All scores of one decided turn with their conditions, and what was made of them."""

    session_id: str
    project: str
    lane: Lane
    turn_id: str
    turn_number: int
    """Counts the session's closed turns from 1; 0 in the session lane."""
    decided_at: int
    position: Position
    trace_ids: tuple[str, ...]
    scores: tuple[ReportScore, ...]
    signatures: tuple[str, ...]
    severity: Severity | None
    decision: Decision
    gates: tuple[GateSnapshot, ...]
    flagged_traces: tuple[str, ...]
    summary: str
    rules_hash: str
    task: str | None = None
    """The session's task, if any of its traces named one so far."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What agents subscribe to: one problem of one session, said once."""

    notice_id: str
    project: str
    session_id: str
    turn_id: str
    lane: Lane
    severity: Severity
    signatures: tuple[str, ...]
    scores: tuple[ReportScore, ...]
    """The alerting scores only."""
    flagged_traces: tuple[str, ...]
    values: tuple[tuple[str | None, str, float], ...]
    """Every resolved value of the report as (trace_id, metric, value)."""
    summary: str
    time: int
    shadow: bool
    rules_hash: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A notice before the circuit breaker, with the settings that apply to it and where it came from."""

    notice: Notice
    position: Position
    index: int
    """Among the outputs of that step for that session."""
    breaker_max_notices: int
    breaker_window_ms: int
    capture_case: bool
    input: str | None


@dataclass(frozen=True, slots=True)
class BreakerReset:
    """An operator's word that the project's agents may be told things again."""

    project: str
    requested_at: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NeedsHuman:
    """Published instead of a notice when the breaker trips: too many notices in too short a time."""

    needs_human_id: str
    project: str
    session_id: str
    turn_id: str
    notices: int
    window_ms: int
    sessions: tuple[str, ...]
    signatures: tuple[str, ...]
    summary: str
    time: int


@dataclass(frozen=True, slots=True)
class EvalCase:
    """A posted breach kept as a replayable test case."""

    case_id: str
    project: str
    session_id: str
    turn_id: str
    signatures: tuple[str, ...]
    baseline: tuple[tuple[str | None, str, float], ...]
    input: str | None
    time: int


class TurnSettled(NamedTuple):
    """The word that a turn's diagnosis has landed."""

    settled_id: str
    session_id: str
    project: str
    lane: Lane
    turn_id: str
    outcome: Outcome
    reason: str
    notice_id: str | None
    time: int


class JournalEntry(NamedTuple):
    """An event worth keeping."""

    journal_id: str
    kind: JournalKind
    reason: str
    session_id: str | None
    project: str | None
    turn_id: str | None
    trace_id: str | None
    metric: str | None
    detail: str
    time: int
    notice: Notice | None = None
    """What would have been posted: with `shadow` and `suppressed`."""


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """What evaluators are asked to score."""

    run_id: str
    session_id: str
    project: str
    turn_id: str
    tier: int
    attempt: int
    trace_ids: tuple[str, ...]
    metrics: tuple[str, ...]
    requested_at: int
    part: int = 0
    """A run over many traces is asked for in parts, numbered from 0; the ladder's runs have one."""
    log_offset: int = -1
    """Of the session-log record at which the ladder asked; -1 for a run that others asked for."""
    model: str | None = None
    """The judge's model, over the configured one."""
    signal_weights: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Metric -> pass line, over the metric's own."""
    max_evals: int = 0
    """What this request may spend of its run's judgements; 0: any number, or what its session may; below 0: none."""
    max_tokens: int = 0


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A bug: the rules raised on a valid record. The fold goes on as if the record were not there."""

    name: str
    """The session or project whose step it was."""
    error: str
    """Class and message of the exception."""


SessionOutput = Report | Candidate | EvalRequest | TurnSettled | JournalEntry | StepFailed
BreakerOutput = Notice | NeedsHuman | EvalCase | TurnSettled | JournalEntry | StepFailed
