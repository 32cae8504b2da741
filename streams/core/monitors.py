"""A monitor: a run that comes again and again; a fold of its events. Its times are arguments: no clock, no cadence here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from streams.core.ids import digest
from streams.core.model import JournalEntry, JournalKind, ScoreTarget
from streams.core.run_targets import Filters
from streams.core.runs import EvalRun, MonitorRunEnded, RunCreated

MAX_RECENT_RUNS: Final = 32


class MonitorStatus(StrEnum):
    """Whether a monitor runs by itself."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    """Only when triggered."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """What is run again and again, how often, and when it was run last."""

    monitor_id: str
    project: str
    name: str
    target: ScoreTarget
    metrics: tuple[str, ...]
    cadence: str
    """every_6h, daily or weekly from the last run on, or cron: and five fields, in UTC."""
    created_at: int
    filters: Filters = field(default_factory=Filters)
    sampling_rate: float = 1.0
    model: str | None = None
    signal_weights: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    only_if_changed: bool = True
    """Whether a run is left out when nothing of its project was ingested since the last one."""
    status: MonitorStatus = MonitorStatus.ACTIVE
    last_run_at: int | None = None
    last_run_id: str | None = None
    next_run_at: int | None = None
    """None while paused."""
    consecutive_failures: int = 0
    """Runs that broke since the last one that did not."""


@dataclass(frozen=True, slots=True)
class MonitorPut:
    """A new monitor, or other wishes of a known one: what it has lived through stays as it is."""

    monitor: Monitor


@dataclass(frozen=True, slots=True)
class MonitorPaused:
    monitor_id: str


@dataclass(frozen=True, slots=True)
class MonitorResumed:
    monitor_id: str
    next_at: int


@dataclass(frozen=True, slots=True)
class MonitorDeleted:
    monitor_id: str


@dataclass(frozen=True, slots=True)
class MonitorTriggered:
    """Someone wants a run now: also of a paused monitor, also when nothing has changed."""

    monitor_id: str
    at: int
    ends: tuple[int, ...]
    """As a run's."""


@dataclass(frozen=True, slots=True)
class MonitorDue:
    """The clock has reached a monitor's next run; counts only where `due_at` is still that time."""

    monitor_id: str
    due_at: int
    at: int
    """When the scheduler saw it: several missed times are one."""
    next_at: int
    ends: tuple[int, ...]
    changed: bool
    """Whether something was ingested since the last run."""


@dataclass(frozen=True, slots=True)
class MonitorGone:
    """A monitor was deleted: its record is to be removed."""

    monitor_id: str


MonitorEvent = (
    MonitorPut | MonitorPaused | MonitorResumed | MonitorDeleted | MonitorTriggered | MonitorDue | MonitorRunEnded
)
MonitorOutput = Monitor | MonitorGone | RunCreated | JournalEntry


class MonitorState(NamedTuple):
    """What the fold remembers of a monitor."""

    monitor: Monitor
    ends: tuple[int, ...] = ()
    """Where the traces topic ended at the last run; empty before the first."""
    running: tuple[str, ...] = ()
    """Its latest runs that have not ended, oldest first."""
    ended: tuple[str, ...] = ()
    """Its latest runs that have, oldest first: to tell repeats."""
    is_deleted: bool = False
    changed_at: int = 0
    """When its last event was appended, milliseconds since 1970, UTC."""
    offset: int = -1
    """The last record of the log applied."""


Step = tuple[MonitorState | None, tuple[MonitorOutput, ...]]


def step(state: MonitorState | None, event: MonitorEvent, now: int) -> Step:
    """Fold one event; *now* is the log's time in milliseconds. An event that says nothing new changes nothing."""
    if state is None:
        return (MonitorState(event.monitor), (event.monitor,)) if isinstance(event, MonitorPut) else (None, ())
    stepped: Step = state, ()
    if state.is_deleted:
        return stepped
    match event:
        case MonitorDeleted():
            stepped = state._replace(is_deleted=True), (MonitorGone(event.monitor_id),)
        case MonitorTriggered():
            stepped = _run(state, triggered_run_id(event.monitor_id, event.at), event.at, event.ends)
        case MonitorDue():
            stepped = _due(state, event, now)
        case MonitorRunEnded():
            stepped = _ended(state, event, now)
        case _:
            stepped = _shown(state, _as_wanted(state.monitor, event))
    return stepped


def triggered_run_id(monitor_id: str, at: int) -> str:
    """Return the id of the run that someone asks for at *at*."""
    return digest("triggered", monitor_id, at)


def _shown(state: MonitorState, monitor: Monitor) -> Step:
    """Take over a changed monitor; one that is as before is not said again."""
    return (state, ()) if monitor == state.monitor else (state._replace(monitor=monitor), (monitor,))


def _as_wanted(monitor: Monitor, event: MonitorPut | MonitorPaused | MonitorResumed) -> Monitor:
    if isinstance(event, MonitorPut):
        return _with_wishes(monitor, event.monitor)
    if isinstance(event, MonitorPaused):
        return replace(monitor, status=MonitorStatus.PAUSED, next_run_at=None)
    if monitor.status is MonitorStatus.ACTIVE:
        return monitor
    return replace(monitor, status=MonitorStatus.ACTIVE, next_run_at=event.next_at)


def _with_wishes(known: Monitor, wanted: Monitor) -> Monitor:
    """Return the monitor as it is wanted, with what only the fold may say of it."""
    moved = wanted.cadence != known.cadence and known.status is MonitorStatus.ACTIVE
    return replace(
        wanted,
        created_at=known.created_at,
        status=known.status,
        last_run_at=known.last_run_at,
        last_run_id=known.last_run_id,
        next_run_at=wanted.next_run_at if moved else known.next_run_at,
        consecutive_failures=known.consecutive_failures,
    )


def _due(state: MonitorState, event: MonitorDue, now: int) -> Step:
    """Reschedule, then run: whatever becomes of the run, the monitor's next time stands."""
    if event.due_at != state.monitor.next_run_at:
        return state, ()
    rescheduled = state._replace(monitor=replace(state.monitor, next_run_at=event.next_at))
    if state.monitor.only_if_changed and state.ends and not event.changed:
        skipped = _entry(
            state.monitor, JournalKind.SKIP, "nothing_ingested", event.due_at, "nothing new since its last run", now
        )
        return rescheduled, (rescheduled.monitor, skipped)
    return _run(rescheduled, digest("due", event.monitor_id, event.due_at), event.at, event.ends)


def _run(state: MonitorState, run_id: str, at: int, ends: tuple[int, ...]) -> Step:
    if run_id in state.running or run_id in state.ended:
        return state, ()
    monitor = replace(state.monitor, last_run_at=at, last_run_id=run_id)
    run = EvalRun(
        run_id=run_id,
        project=monitor.project,
        name=monitor.name,
        target=monitor.target,
        metrics=monitor.metrics,
        created_at=at,
        filters=monitor.filters,
        sampling_rate=monitor.sampling_rate,
        model=monitor.model,
        signal_weights=monitor.signal_weights,
        thresholds=monitor.thresholds,
        monitor_id=monitor.monitor_id,
    )
    running = (*state.running, run_id)[-MAX_RECENT_RUNS:]
    return state._replace(monitor=monitor, ends=ends, running=running), (monitor, RunCreated(run, ends))


def _ended(state: MonitorState, event: MonitorRunEnded, now: int) -> Step:
    if event.run_id not in state.running:
        return state, ()
    state = state._replace(
        running=tuple(run_id for run_id in state.running if run_id != event.run_id),
        ended=(*state.ended, event.run_id)[-MAX_RECENT_RUNS:],
    )
    if event.error is None:
        return _shown(state, replace(state.monitor, consecutive_failures=0))
    failures = state.monitor.consecutive_failures + 1
    state = state._replace(monitor=replace(state.monitor, consecutive_failures=failures))
    said = f"run {event.run_id} broke, {failures} in a row: {event.error}"
    entry = _entry(state.monitor, JournalKind.RUN_FAILED, "monitor_run_broke", event.run_id, said, now)
    return state, (state.monitor, entry)


def _entry(monitor: Monitor, kind: JournalKind, reason: str, about: str | int, detail: str, now: int) -> JournalEntry:
    return JournalEntry(
        journal_id=digest(reason, monitor.monitor_id, about),
        kind=kind,
        reason=reason,
        session_id=None,
        project=monitor.project,
        turn_id=None,
        trace_id=None,
        metric=None,
        detail=f"monitor {monitor.monitor_id} ({monitor.name}): {detail}",
        time=now,
    )
