"""The fold of one notice-candidates partition: which candidate is a repeat, and what each project's breaker says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from streams.core import breaker
from streams.core.breaker import BreakerState
from streams.core.model import BreakerOutput, BreakerReset, Candidate, StepFailed


class CandidateRecord(NamedTuple):
    """One record of the candidates log."""

    offset: int
    body: Candidate | BreakerReset

    @property
    def project(self) -> str:
        return self.body.project if isinstance(self.body, BreakerReset) else self.body.notice.project


@dataclass(frozen=True)
class CandidatePartitionState:
    """Where the fold of one partition stands."""

    position: int = 0
    """The next offset to read."""
    now: int = 0
    """The largest candidate time seen."""
    sources: Mapping[tuple[str, int], tuple[int, str, int]] = field(default_factory=dict)
    """(log topic, partition) -> (offset, session id, index) of the last candidate applied from there."""


class CandidateFold:
    """Folds a partition's candidates in order; `load` finds the stored state of a project."""

    def __init__(self, state: CandidatePartitionState, load: Callable[[str], BreakerState | None]) -> None:
        self.position = state.position
        self.now = state.now
        self._sources = dict(state.sources)
        self._load = load
        self.touched: dict[str, BreakerState] = {}

    @property
    def state(self) -> CandidatePartitionState:
        """Where the fold stands now."""
        return CandidatePartitionState(self.position, self.now, dict(self._sources))

    def apply(self, record: CandidateRecord) -> tuple[BreakerOutput, ...]:
        """Fold one candidate or reset and return what it puts out; a repeat puts out nothing."""
        self.position = record.offset + 1
        body = record.body
        if isinstance(body, Candidate):
            self.now = max(self.now, body.notice.time)
            if self._is_repeat(body):
                return ()
        state = self.get(record.project) or BreakerState()
        if state.offset >= record.offset:
            return ()  # stored before a crash, when the position record was not yet
        try:
            state, outputs = breaker.step(state, body, self.now)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not stop the stream: the candidate counts as absent
            outputs = (StepFailed(record.project, f"{type(error).__name__}: {error}"),)
        self.touched[record.project] = state._replace(offset=record.offset)
        return outputs

    def get(self, project: str) -> BreakerState | None:
        """Return a project's breaker as the fold finds it now."""
        return self.touched.get(project) or self._load(project)

    def flush(self) -> dict[str, BreakerState]:
        """Return the states touched since the last flush."""
        touched, self.touched = self.touched, {}
        return touched

    def _is_repeat(self, candidate: Candidate) -> bool:
        source = (candidate.position.topic, candidate.position.partition)
        place = (candidate.position.offset, candidate.notice.session_id, candidate.index)
        if place <= self._sources.get(source, (-1, "", -1)):
            return True
        self._sources[source] = place
        return False
