"""The runs stage: folds the eval log into eval runs, monitors, and what follows from them."""

from collections.abc import Iterator

from aiokafka import ConsumerRecord

from streams import tables
from streams.agents.metering import Meter
from streams.agents.outbox import EvalOutput, Outbox
from streams.agents.stage import FoldStage
from streams.core.eval_log import MONITORS, RUNS, EvalLogFold, EvalLogRecord, EvalState
from streams.core.eval_log import EvalPartitionState as Place
from streams.core.model import StepFailed
from streams.engine import PartitionState, Publisher
from streams.wire import Wire


class RunStage(FoldStage[EvalLogFold, EvalLogRecord]):
    """Owns the folds of the assigned eval-log partitions."""

    def __init__(self, publisher: Publisher, outbox: Outbox, wire: Wire, meter: Meter) -> None:
        super().__init__(publisher, outbox, meter)
        self._wire = wire

    def take_up(self, partition: int, state: PartitionState) -> EvalLogFold:
        def load(name: str) -> EvalState | None:
            stored = state.get(name.encode())
            return None if stored is None else tables.eval_state(name, stored)

        stored = state.get(tables.position_key(partition))
        fold = EvalLogFold(Place() if stored is None else tables.decode_state(Place, stored), load)
        fold.restore(_stored(state))
        return fold

    def read(self, record: ConsumerRecord) -> EvalLogRecord:
        return self._wire.read_eval_log_record(record.value, record.offset, record.timestamp)

    def apply(self, fold: EvalLogFold, read: EvalLogRecord) -> tuple[EvalOutput | StepFailed, ...]:
        return fold.apply(read)

    def remember(self, fold: EvalLogFold, partition: int) -> tables.Changes:
        touched, forgotten = fold.flush()
        return tables.eval_changes(touched, fold.state, partition, forgotten)


def _stored(state: PartitionState) -> Iterator[EvalState]:
    for prefix in (RUNS, MONITORS):
        for key, stored in state.items(prefix.encode()):
            yield tables.eval_state(key.decode(), stored)
