"""An eval run: which scores are asked for, of what, and how far that has come; a fold of its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from streams.core.bits import count, with_bit
from streams.core.ids import digest
from streams.core.model import JournalEntry, JournalKind, ScoreTarget
from streams.core.run_targets import Filters
from streams.core.text import plain

MAX_PARTS: Final = 1_000_000
MAX_ERROR_BYTES: Final = 1024


class RunStatus(StrEnum):
    """How far an eval run has come."""

    PENDING = "PENDING"
    """Created; its targets have not been chosen yet."""
    RUNNING = "RUNNING"
    """Its targets are with the evaluators."""
    COMPLETED = "COMPLETED"
    """Every target was handled, also where every score failed."""
    FAILED = "FAILED"
    """The run itself broke."""


FINISHED: Final = frozenset({RunStatus.COMPLETED, RunStatus.FAILED})


@dataclass(frozen=True, slots=True)
class EvalRun:
    """What a run was asked to do, and how far it is. Counts only grow."""

    run_id: str
    project: str
    name: str
    target: ScoreTarget
    metrics: tuple[str, ...]
    created_at: int
    filters: Filters = field(default_factory=Filters)
    sampling_rate: float = 1.0
    """Which share of the chosen targets is scored, in [0, 1]."""
    model: str | None = None
    """The judge's model, over the configured one."""
    signal_weights: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Metric -> pass line, over the metric's own."""
    monitor_id: str | None = None
    turn_id: str | None = None
    """The turn whose evaluation ladder asked; none for a run of its own."""
    retry_of: str | None = None
    """A run whose failed scores this one asks for again, instead of choosing targets."""
    status: RunStatus = RunStatus.PENDING
    total_targets: int = 0
    evaluated_count: int = 0
    """Targets handled."""
    failed_count: int = 0
    """Scores, one a target and metric, that failed."""
    input_tokens: int = 0
    output_tokens: int = 0
    judge_calls: int = 0
    cost: float = 0.0
    error_message: str | None = None
    completed_at: int | None = None


@dataclass(frozen=True, slots=True)
class RunCreated:
    """Someone, or a monitor, asks for a run."""

    run: EvalRun
    ends: tuple[int, ...]
    """Of each partition of the traces topic, the offset before which the run chooses: a plan made twice is the same."""


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """The run's targets have been chosen, and evaluators have been asked."""

    run_id: str
    targets: int
    parts: int
    """Requests that they were asked with, numbered from 0."""


@dataclass(frozen=True, slots=True)
class PartHandled:
    """Evaluators are done with one request of a run: its scores are acknowledged."""

    run_id: str
    session_id: str
    part: int
    evaluated: int
    """Targets handled: the request's traces, or the one session where the run goes over sessions."""
    failed: int
    input_tokens: int = 0
    output_tokens: int = 0
    judge_calls: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class RunBroke:
    """The run cannot go on."""

    run_id: str
    error: str


@dataclass(frozen=True, slots=True)
class MonitorRunEnded:
    """A monitor's run has finished: for the monitor, which may stand in another partition."""

    monitor_id: str
    run_id: str
    error: str | None
    """Why it broke; none for a run that was completed."""


RunEvent = RunCreated | RunPlanned | PartHandled | RunBroke
RunOutput = EvalRun | JournalEntry | MonitorRunEnded


class RunState(NamedTuple):
    """What the fold remembers of a run."""

    run: EvalRun
    ends: tuple[int, ...]
    parts: int | None = None
    """None until it is planned."""
    handled: tuple[int, ...] = ()
    """Which parts were handled, as bits."""
    changed_at: int = 0
    """When its last event was appended, milliseconds since 1970, UTC."""
    offset: int = -1
    """The last record of the log applied."""


def step(state: RunState | None, event: RunEvent, now: int) -> tuple[RunState | None, tuple[RunOutput, ...]]:
    """Fold one event; *now* is the log's time in milliseconds. An event that says nothing new changes nothing."""
    match event:
        case RunCreated():
            return (RunState(event.run, event.ends), (event.run,)) if state is None else (state, ())
        case _ if state is None or state.run.status in FINISHED:
            return state, ()
        case RunPlanned():
            return _planned(state, event, now)
        case PartHandled():
            return _handled(state, event, now)
        case RunBroke():
            return _finished(state, now, plain(event.error, MAX_ERROR_BYTES) or "it broke without a word")


def _planned(state: RunState, event: RunPlanned, now: int) -> tuple[RunState, tuple[RunOutput, ...]]:
    if state.parts is not None:
        return state, ()
    run = replace(state.run, status=RunStatus.RUNNING, total_targets=event.targets)
    return _going_on(state._replace(run=run, parts=event.parts), now)


def _handled(state: RunState, event: PartHandled, now: int) -> tuple[RunState, tuple[RunOutput, ...]]:
    """Count a part; evaluators may answer before the plan is known to be complete."""
    if not 0 <= event.part < (MAX_PARTS if state.parts is None else state.parts):
        return state, ()
    handled = with_bit(state.handled, event.part)
    if handled is state.handled:
        return state, ()
    run = state.run
    counted = replace(
        run,
        status=RunStatus.RUNNING,
        evaluated_count=run.evaluated_count + event.evaluated,
        failed_count=run.failed_count + event.failed,
        input_tokens=run.input_tokens + event.input_tokens,
        output_tokens=run.output_tokens + event.output_tokens,
        judge_calls=run.judge_calls + event.judge_calls,
        cost=run.cost + event.cost,
    )
    return _going_on(state._replace(run=counted, handled=handled), now)


def _going_on(state: RunState, now: int) -> tuple[RunState, tuple[RunOutput, ...]]:
    if count(state.handled) != state.parts:
        return state, (state.run,)
    run = replace(state.run, evaluated_count=state.run.total_targets)
    return _finished(state._replace(run=run), now, None)


def _finished(state: RunState, now: int, error: str | None) -> tuple[RunState, tuple[RunOutput, ...]]:
    status = RunStatus.COMPLETED if error is None else RunStatus.FAILED
    run = replace(state.run, status=status, error_message=error, completed_at=now)
    outputs: list[RunOutput] = [run]
    if error is not None:
        outputs.append(_broke(run, error, now))
    if run.monitor_id is not None:
        outputs.append(MonitorRunEnded(run.monitor_id, run.run_id, error))
    # A finished run needs no more than its name: it is kept to tell repeats.
    return state._replace(run=run, handled=()), tuple(outputs)


def _broke(run: EvalRun, error: str, now: int) -> JournalEntry:
    return JournalEntry(
        journal_id=digest("run_failed", run.run_id),
        kind=JournalKind.RUN_FAILED,
        reason="run_broke",
        session_id=None,
        project=run.project,
        turn_id=None,
        trace_id=None,
        metric=None,
        detail=f"eval run {run.run_id} ({run.name}): {error}",
        time=now,
    )
