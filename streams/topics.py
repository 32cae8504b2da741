"""Every topic: its name, key, schema and cleanup, and what it is for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Cleanup(StrEnum):
    DELETE = "delete"
    COMPACT = "compact"
    COMPACT_AND_DELETE = "compact,delete"
    """For what changes often, and is of no use once it is old."""


class Retention(StrEnum):
    """Which retention setting bounds a topic that deletes."""

    INPUT = "input_retention_s"
    LOG = "log_retention_s"
    TRACES = "traces_retention_s"
    OUTPUT = "output_retention_s"


class Partitions(StrEnum):
    """Which setting gives a topic its partition count."""

    INPUT = "input_partitions"
    LOG = "log_partitions"
    CANDIDATES = "candidate_partitions"
    OUTPUT = "output_partitions"


@dataclass(frozen=True)
class Topic:
    """One topic as this product creates and checks it."""

    name: str
    key: str
    schema: str | None
    purpose: str
    partitions: Partitions = Partitions.OUTPUT
    cleanup: Cleanup = Cleanup.DELETE
    retention: Retention = Retention.OUTPUT
    log_append_time: bool = False
    """Whether record times must be the broker's, because the fold takes its time from them."""


SESSION, PROJECT = "session_id", "project"

TRACE_INGESTED = "trace-ingested"
EVAL_SCORES = "eval-scores"
SESSION_LOG = "session-log"
TRACES = "traces"
EVAL_REQUESTS = "eval-requests"
TURN_REPORTS = "turn-reports"
NOTICE_CANDIDATES = "notice-candidates"
NOTICES = "notices"
NEEDS_HUMAN = "needs-human"
TURN_SETTLED = "turn-settled"
JOURNAL = "journal"
EVAL_CASES = "eval-cases"
EVAL_LOG = "eval-log"
EVAL_RUNS = "eval-runs"
MONITORS = "monitors"
DEAD_LETTERS = "dead-letters"
SESSION_STATES = "session-states"
BREAKER_STATES = "breaker-states"
EVAL_RUN_STATES = "eval-run-states"
EVAL_TRACE_STATES = "eval-trace-states"
EVAL_SIGNAL_STATES = "eval-signal-states"
EVAL_REQUEST_STATES = "eval-request-states"

_IN = (Partitions.INPUT, Cleanup.DELETE, Retention.INPUT)

TOPICS: tuple[Topic, ...] = (
    Topic(TRACE_INGESTED, SESSION, "Trace", "in: a trace, when completed or changed", *_IN),
    Topic(EVAL_SCORES, SESSION, "Score", "in: one score", *_IN),
    Topic(
        SESSION_LOG,
        f"{SESSION}; none for ticks and rules",
        "LogRecord",
        "what the fold reads, in the order each session saw: the replay record",
        Partitions.LOG,
        Cleanup.DELETE,
        Retention.LOG,
        log_append_time=True,
    ),
    Topic(
        TRACES,
        SESSION,
        "Trace",
        "each validated trace, whole: what evaluators read",
        Partitions.LOG,
        Cleanup.DELETE,
        Retention.TRACES,
    ),
    Topic(EVAL_REQUESTS, SESSION, "EvalRequest", "what evaluators are asked to score", Partitions.LOG),
    Topic(TURN_REPORTS, SESSION, "Report", "every decided turn with its scores, conditions and decision"),
    Topic(
        NOTICE_CANDIDATES,
        PROJECT,
        "Candidate, BreakerReset",
        "notices before the circuit breaker, and breaker resets",
        Partitions.CANDIDATES,
        Cleanup.DELETE,
        Retention.LOG,
    ),
    Topic(NOTICES, SESSION, "Notice", "out: what agents subscribe to"),
    Topic(NEEDS_HUMAN, PROJECT, "NeedsHuman", "out: what people subscribe to"),
    Topic(TURN_SETTLED, SESSION, "TurnSettled", "out: this turn's diagnosis has landed"),
    Topic(JOURNAL, f"{SESSION} or {PROJECT}", "JournalEntry", "out: every other event worth keeping"),
    Topic(EVAL_CASES, "case_id", "EvalCase", "captured replayable cases", cleanup=Cleanup.COMPACT),
    Topic(
        EVAL_LOG,
        "run_id or monitor_id",
        "EvalLogRecord",
        "what happened to eval runs and monitors, in order",
        Partitions.CANDIDATES,
        log_append_time=True,
    ),
    # The ladder makes a run a turn and tier: without an end they would fill the disk, and their scores have one too.
    Topic(EVAL_RUNS, "run_id", "EvalRun", "out: how far each eval run has come", cleanup=Cleanup.COMPACT_AND_DELETE),
    Topic(MONITORS, "monitor_id", "Monitor", "out: every monitor as it stands", cleanup=Cleanup.COMPACT),
    Topic(
        DEAD_LETTERS,
        "the original key",
        None,
        "out: what could not be read, original bytes, reason in headers; without value: marks one as redriven",
    ),
    Topic(
        SESSION_STATES,
        "s/<session_id> or p/<partition>",
        "SessionState, PartitionState",
        "changelog of the session stage's table",
        Partitions.LOG,
        Cleanup.COMPACT,
    ),
    Topic(
        BREAKER_STATES,
        "s/<project> or p/<partition>",
        "BreakerState, BreakerPosition",
        "changelog of the breaker stage's table",
        Partitions.CANDIDATES,
        Cleanup.COMPACT,
    ),
    Topic(
        EVAL_RUN_STATES,
        "r/<run_id>, m/<monitor_id> or p/<partition>",
        "RunState, MonitorState, EvalPartitionState",
        "changelog of the runs stage's table",
        Partitions.CANDIDATES,
        Cleanup.COMPACT,
    ),
    Topic(
        EVAL_TRACE_STATES,
        "t/<session_id>, NUL, <trace_id>; or p/<partition>",
        "KeptTrace, StagePosition",
        "changelog of the catalog stage's table: each trace whole, its updates merged",
        Partitions.LOG,
        Cleanup.COMPACT,
    ),
    Topic(
        EVAL_SIGNAL_STATES,
        "t/<session_id>, NUL, <trace_id>; or p/<partition>",
        "TraceSignals, StagePosition",
        "changelog of the signals stage's table",
        Partitions.LOG,
        Cleanup.COMPACT,
    ),
    Topic(
        EVAL_REQUEST_STATES,
        "r/ or d/ with <run_id>, NUL, <session_id>, NUL, <part>; b/<session_id>; or p/<partition>",
        "RequestState, AnsweredRequest, Spending, StagePosition",
        "changelog of the evaluate stage's table",
        Partitions.LOG,
        Cleanup.COMPACT,
    ),
)

BY_ROLE: Mapping[str, Topic] = {topic.name: topic for topic in TOPICS}

_EVALUATORS_ONLY = frozenset(
    {EVAL_LOG, EVAL_RUNS, MONITORS, EVAL_RUN_STATES, EVAL_TRACE_STATES, EVAL_SIGNAL_STATES, EVAL_REQUEST_STATES}
)
DETECTION = frozenset(BY_ROLE) - _EVALUATORS_ONLY
"""What a worker uses: it starts also where nobody has topics for evaluators."""
EVALUATORS = _EVALUATORS_ONLY | {TRACES, EVAL_REQUESTS, SESSION_LOG, EVAL_SCORES, JOURNAL, DEAD_LETTERS}
"""What an evaluators' worker uses."""


def named(names: Mapping[str, str]) -> dict[str, Topic]:
    """Return every topic by its default name, carrying the name that *names* (default name -> name) gives it."""
    return {role: replace(topic, name=names.get(role, role)) for role, topic in BY_ROLE.items()}
