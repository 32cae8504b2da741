"""The breaker stage: folds the candidates log into notices, calls for a human, cases and settlements."""

from aiokafka import ConsumerRecord

from streams import tables
from streams.agents.metering import Meter
from streams.agents.outbox import Outbox, Output
from streams.agents.stage import FoldStage
from streams.core.breaker import BreakerState
from streams.core.candidates import CandidateFold, CandidateRecord
from streams.core.candidates import CandidatePartitionState as Place
from streams.core.model import StepFailed
from streams.engine import PartitionState, Publisher
from streams.wire import Wire


class BreakerStage(FoldStage[CandidateFold, CandidateRecord]):
    """Owns the folds of the assigned notice-candidates partitions."""

    def __init__(self, publisher: Publisher, outbox: Outbox, wire: Wire, meter: Meter) -> None:
        super().__init__(publisher, outbox, meter)
        self._wire = wire

    def take_up(self, partition: int, state: PartitionState) -> CandidateFold:
        def load(project: str) -> BreakerState | None:
            stored = state.get(tables.state_key(project))
            return None if stored is None else tables.decode_state(BreakerState, stored)

        stored = state.get(tables.position_key(partition))
        return CandidateFold(Place() if stored is None else tables.decode_state(Place, stored), load)

    def read(self, record: ConsumerRecord) -> CandidateRecord:
        return CandidateRecord(record.offset, self._wire.read_candidate(record.value))

    def apply(self, fold: CandidateFold, read: CandidateRecord) -> tuple[Output | StepFailed, ...]:
        return fold.apply(read)

    def remember(self, fold: CandidateFold, partition: int) -> tables.Changes:
        return tables.changes(fold.flush(), fold.state, partition)
