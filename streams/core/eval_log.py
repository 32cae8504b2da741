"""The fold of one eval-log partition: which event touches which run or monitor, and what waits for the owner."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from streams.core import monitors, runs
from streams.core.model import StepFailed
from streams.core.monitors import MonitorEvent, MonitorGone, MonitorOutput, MonitorPut, MonitorState
from streams.core.runs import FINISHED, RunCreated, RunEvent, RunOutput, RunState

V = TypeVar("V")

RUNS: Final = "r/"
MONITORS: Final = "m/"
KEPT_MS: Final = 7 * 86_400_000
"""How long a finished run or a deleted monitor is remembered, to tell repeats."""

EvalEvent = RunEvent | MonitorEvent
EvalState = RunState | MonitorState
EvalLogOutput = RunOutput | MonitorOutput | StepFailed


class EvalLogRecord(NamedTuple):
    """One record of the eval log."""

    offset: int
    time: int
    body: EvalEvent


@dataclass(frozen=True)
class EvalPartitionState:
    """Where the fold of one partition stands."""

    position: int = 0
    """The next offset to read."""
    now: int = 0
    """The largest record time seen."""


def about(event: EvalEvent | MonitorGone) -> str:
    """Return the id of the run or monitor that an event is about: the key of its record."""
    match event:
        case RunCreated():
            return event.run.run_id
        case MonitorPut():
            return event.monitor.monitor_id
        case _ if isinstance(event, RunEvent):
            return event.run_id
        case _:
            return event.monitor_id


def run_name(run_id: str) -> str:
    """Return the name that a run's state goes by."""
    return RUNS + run_id


def monitor_name(monitor_id: str) -> str:
    """Return the name that a monitor's state goes by."""
    return MONITORS + monitor_id


class EvalLogFold:
    """Folds a partition's events in order; `load` finds a stored state by its name.

    What it changed is in `touched` until `flush` hands it over for storing.
    """

    def __init__(self, state: EvalPartitionState, load: Callable[[str], EvalState | None]) -> None:
        self.position = state.position
        self.now = state.now
        self._load = load
        self._unplanned: dict[str, None] = {}
        self._unfinished: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._over: dict[str, int] = {}
        self.touched: dict[str, EvalState] = {}

    @property
    def state(self) -> EvalPartitionState:
        """Where the fold stands now."""
        return EvalPartitionState(self.position, self.now)

    def restore(self, states: Iterable[EvalState]) -> None:
        """Rebuild the indexes from stored states."""
        for state in sorted(states, key=lambda item: item.changed_at):
            self._index(state)

    @property
    def unplanned(self) -> tuple[str, ...]:
        """Ids of the runs whose targets have not been chosen."""
        return tuple(self._unplanned)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Ids of the runs that have not ended."""
        return tuple(self._unfinished)

    def silent_since(self, time: int) -> tuple[str, ...]:
        """Return the ids of the unfinished runs that nothing was heard of since *time*."""
        return tuple(run_id for run_id, changed_at in self._unfinished.items() if changed_at < time)

    def due(self, at: int) -> tuple[str, ...]:
        """Return the ids of the monitors whose next run has come at *at*."""
        return tuple(monitor_id for monitor_id, next_at in self._due.items() if next_at <= at)

    def run(self, run_id: str) -> RunState | None:
        """Return a run as the fold finds it now."""
        state = self._get(run_name(run_id))
        return state if isinstance(state, RunState) else None

    def monitor(self, monitor_id: str) -> MonitorState | None:
        """Return a monitor as the fold finds it now."""
        state = self._get(monitor_name(monitor_id))
        return state if isinstance(state, MonitorState) else None

    def apply(self, record: EvalLogRecord) -> tuple[EvalLogOutput, ...]:
        """Fold one event and return what it puts out; one that says nothing new puts out nothing."""
        self.position = record.offset + 1
        self.now = max(self.now, record.time)
        try:
            return self._run_step(record) if isinstance(record.body, RunEvent) else self._monitor_step(record)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not stop the stream: the event counts as absent
            return (StepFailed(about(record.body), f"{type(error).__name__}: {error}"),)

    def flush(self) -> tuple[dict[str, EvalState], list[str]]:
        """Return the states touched since the last flush, and the names of those that are forgotten since."""
        touched, self.touched = self.touched, {}
        forgotten = [name for name, since in self._over.items() if since < self.now - KEPT_MS]
        for name in forgotten:
            del self._over[name]
        return touched, forgotten

    def _run_step(self, record: EvalLogRecord) -> tuple[EvalLogOutput, ...]:
        event = record.body
        assert isinstance(event, RunEvent)
        state = self.run(about(event))
        if state is not None and state.offset >= record.offset:
            return ()  # stored before a crash, when the position record was not yet
        changed, outputs = runs.step(state, event, self.now)
        self._keep(record, state, changed)
        return outputs

    def _monitor_step(self, record: EvalLogRecord) -> tuple[EvalLogOutput, ...]:
        event = record.body
        assert not isinstance(event, RunEvent)
        state = self.monitor(about(event))
        if state is not None and state.offset >= record.offset:
            return ()
        changed, outputs = monitors.step(state, event, self.now)
        self._keep(record, state, changed)
        return outputs

    def _keep(self, record: EvalLogRecord, before: EvalState | None, state: EvalState | None) -> None:
        if state is None or state is before:
            return
        state = state._replace(offset=record.offset, changed_at=self.now)
        self.touched[_name(state)] = state
        self._index(state)

    def _get(self, name: str) -> EvalState | None:
        state = self.touched.get(name) or self._load(name)
        return None if state is None or (_is_over(state) and state.changed_at < self.now - KEPT_MS) else state

    def _index(self, state: EvalState) -> None:
        if _is_over(state):
            self._over[_name(state)] = state.changed_at
        if isinstance(state, RunState):
            _put(self._unplanned, state.run.run_id, None, held=not _is_over(state) and state.parts is None)
            _put(self._unfinished, state.run.run_id, state.changed_at, held=not _is_over(state))
        else:
            next_at = state.monitor.next_run_at
            _put(self._due, state.monitor.monitor_id, next_at or 0, held=not _is_over(state) and next_at is not None)


def _put(index: dict[str, V], key: str, value: V, *, held: bool) -> None:
    if held:
        index[key] = value
    else:
        index.pop(key, None)


def _is_over(state: EvalState) -> bool:
    """Whether nothing more can happen to a run or monitor."""
    return state.run.status in FINISHED if isinstance(state, RunState) else state.is_deleted


def _name(state: EvalState) -> str:
    if isinstance(state, RunState):
        return run_name(state.run.run_id)
    return monitor_name(state.monitor.monitor_id)
