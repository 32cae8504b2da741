"""What a session remembers between events: immutable values, and the draft on which one step works."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from streams.core.detectors import DetectorState
from streams.core.gate import GateState
from streams.core.ids import digest, short_hash
from streams.core.model import (
    DEFAULT_PROJECT,
    Condition,
    JournalEntry,
    JournalKind,
    Notice,
    Position,
    Score,
    SessionOutput,
    Trace,
)
from streams.core.notices import NoticeState
from streams.core.pace import PaceState
from streams.core.rules import Rules

MAX_EVALUATED: Final = 128
MAX_SEEN: Final = 64
MAX_TRACES: Final = 1024
MAX_RUNS: Final = 16
MAX_TRACE_SCORES: Final = 32
MAX_HELD_BYTES: Final = 640 * 1024
"""What a session's undecided traces and scores may take, roughly as stored."""


class TurnTrace(NamedTuple):
    """One trace of an undecided turn."""

    trace_id: str
    started_at: int
    scores: tuple[Score, ...] = ()


class Turn(NamedTuple):
    """The traces between two points where the agent hands back control, until they are decided."""

    traces: tuple[TurnTrace, ...]
    """In started_at order."""
    joined_at: int
    """When the last trace joined."""
    turn_index: int | None = None
    input: str | None = None
    """At most 1 KiB of the first trace's input."""
    scores: tuple[Score, ...] = ()
    """Scores of the turn as a whole."""
    scored_at: int | None = None
    """When the latest score came; none without any."""
    closed_at: int | None = None
    number: int = 0
    """Counts the session's closed turns from 1; 0 while open."""
    closing_trace: str = ""
    skip: str = ""
    """Why a cost control leaves this turn out; empty when it is evaluated."""
    tier: int = 1
    """The tier whose scores it waits for."""
    tier_since: int = 0
    """When that wait, or the latest request for the tier, started."""
    attempt: int = 0
    """Requests made for the tier."""
    given_up: int = 0
    """The highest tier whose wait has run out."""


class PendingTrace(NamedTuple):
    """A trace that cannot join a turn yet: announced but not completed, or known from its scores only."""

    trace_id: str
    since: int
    trace: Trace | None = None
    scores: tuple[Score, ...] = ()
    scored_at: int | None = None


class RunScore(NamedTuple):
    """A session score with what the detectors found when it came."""

    score: Score
    conditions: tuple[Condition, ...]
    average: float | None


class SessionRun(NamedTuple):
    """The scores of one eval run that will form one report of the session lane."""

    run_id: str
    since: int
    scores: tuple[RunScore, ...] = ()


class SessionState(NamedTuple):
    """Everything detection knows of one session."""

    session_id: str
    project: str = DEFAULT_PROJECT
    announced: bool = False
    """Whether any trace of it was ever announced."""
    turns: tuple[Turn, ...] = ()
    """Undecided turns, oldest first; at most the last one is open."""
    pending: tuple[PendingTrace, ...] = ()
    runs: tuple[SessionRun, ...] = ()
    gates: Mapping[str, GateState] = {}
    detectors: Mapping[str, Mapping[str, DetectorState]] = {}
    """Session metric -> condition -> state."""
    trace_notices: NoticeState = NoticeState()
    session_notices: NoticeState = NoticeState()
    evaluated: tuple[int, ...] = ()
    """Hashes of the last evaluated trace ids."""
    newest_decided: int | None = None
    """The latest started_at among decided traces."""
    seen_scores: tuple[int, ...] = ()
    """Hashes of the last session-lane score ids."""
    decided_runs: tuple[int, ...] = ()
    """Hashes of the last decided session-lane eval run ids."""
    turn_count: int = 0
    evaluated_close: int | None = None
    """When the last turn that no cost control left out was closed."""
    warned_late: bool = False
    held_bytes: int = 0
    """The weight of everything undecided, see `weight`."""
    failed_steps: int = 0
    """Records of this session that the rules raised on, which is a bug: each counts as absent."""
    offset: int = -1
    """The last log record applied."""
    last_activity: int = 0
    task: str | None = None
    """The first task that any of its traces named."""
    paces: Mapping[str, PaceState] = {}
    """Tier-1 metric -> pace, for the metrics that have one."""


def weight(item: TurnTrace | PendingTrace | Score) -> int:
    """Return about how many bytes *item* takes in a stored state."""
    if isinstance(item, Score):
        # One text to measure instead of five: this runs for every score.
        texts = f"{item.score_id}{item.name}{item.trace_id}{item.reason}{item.eval_run_id}"
        flagged = sum(2 + _size(trace_id) for trace_id in item.flagged_traces) if item.flagged_traces else 0
        return 40 + _size(texts) + flagged
    return base_weight(item) + sum([weight(score) for score in item.scores])


def base_weight(item: TurnTrace | PendingTrace) -> int:
    """Return the weight of a trace without its scores."""
    opening = item.trace.input if isinstance(item, PendingTrace) and item.trace else None
    return 48 + _size(item.trace_id) + (_size(opening) if opening else 0)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Draft:
    """A session in the middle of one step: the parts of its state, open to change, and the outputs so far."""

    __slots__ = (
        "announced",
        "decided_runs",
        "detectors",
        "evaluated",
        "evaluated_close",
        "failed_steps",
        "gates",
        "held_bytes",
        "newest_decided",
        "now",
        "outputs",
        "paces",
        "pending",
        "position",
        "project",
        "rules",
        "runs",
        "seen_scores",
        "session_id",
        "session_notices",
        "task",
        "trace_notices",
        "turn_count",
        "turns",
        "warned_late",
    )

    def __init__(self, state: SessionState, rules: Rules, now: int, position: Position) -> None:
        self.rules = rules
        self.now = now
        self.position = position
        self.outputs: list[SessionOutput] = []
        # All at once: this runs for every event, and to ask for each field by its name takes three times as long.
        (
            self.session_id,
            self.project,
            self.announced,
            turns,
            pending,
            runs,
            self.gates,
            self.detectors,
            self.trace_notices,
            self.session_notices,
            self.evaluated,
            self.newest_decided,
            self.seen_scores,
            self.decided_runs,
            self.turn_count,
            self.evaluated_close,
            self.warned_late,
            self.held_bytes,
            self.failed_steps,
            _,
            _,
            self.task,
            self.paces,
        ) = state
        self.turns = list(turns)
        self.pending = {item.trace_id: item for item in pending} if pending else {}
        self.runs = {item.run_id: item for item in runs} if runs else {}

    def finish(self) -> SessionState:
        """Return the state after the step."""
        # Again for every event: to call the class takes twice as long.
        fields = (
            self.session_id,
            self.project,
            self.announced,
            tuple(self.turns),
            tuple(self.pending.values()) if self.pending else (),
            tuple(self.runs.values()) if self.runs else (),
            self.gates,
            self.detectors,
            self.trace_notices,
            self.session_notices,
            self.evaluated,
            self.newest_decided,
            self.seen_scores,
            self.decided_runs,
            self.turn_count,
            self.evaluated_close,
            self.warned_late,
            self.held_bytes,
            self.failed_steps,
            self.position.offset,
            self.now,
            self.task,
            self.paces,
        )
        return tuple.__new__(SessionState, fields)

    def journal(
        self,
        kind: JournalKind,
        reason: str,
        *,
        turn_id: str | None = None,
        trace_id: str | None = None,
        metric: str | None = None,
        detail: str = "",
        notice: Notice | None = None,
    ) -> None:
        """Add a journal entry to the outputs."""
        index = len(self.outputs)
        entry = JournalEntry(
            journal_id=digest(self.position.partition, self.position.offset, self.session_id, index),
            kind=kind,
            reason=reason,
            session_id=self.session_id,
            project=self.project,
            turn_id=turn_id,
            trace_id=trace_id,
            metric=metric,
            detail=detail,
            time=self.now,
            notice=notice,
        )
        self.outputs.append(entry)


def remember(held: tuple[int, ...], text: str, limit: int) -> tuple[int, ...]:
    """Return *held* with the hash of *text* as its newest, at most *limit* of them."""
    return (*held, short_hash(text))[-limit:]
