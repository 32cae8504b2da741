"""The session stage: folds the session log into reports, candidates, requests, settlements and the journal."""

import structlog
from aiokafka import ConsumerRecord

from streams import tables
from streams.agents.metering import Meter
from streams.agents.outbox import Outbox, Output
from streams.agents.stage import FoldStage
from streams.core.log import LogFold, LogRecord
from streams.core.log import PartitionState as Place
from streams.core.model import JournalEntry, JournalKind, StepFailed
from streams.core.state import SessionState
from streams.engine import PartitionState, Publisher
from streams.wire import Wire

log = structlog.get_logger(__name__)


class SessionStage(FoldStage[LogFold, LogRecord]):
    """Owns the folds of the assigned session-log partitions."""

    def __init__(self, publisher: Publisher, outbox: Outbox, wire: Wire, topic: str, meter: Meter) -> None:
        super().__init__(publisher, outbox, meter)
        self._wire = wire
        self._topic = topic

    def take_up(self, partition: int, state: PartitionState) -> LogFold:
        def load(session_id: str) -> SessionState | None:
            stored = state.get(tables.state_key(session_id))
            return None if stored is None else tables.decode_state(SessionState, stored)

        stored = state.get(tables.position_key(partition))
        place = Place() if stored is None else tables.decode_state(Place, stored)
        fold = LogFold(partition, place, load, self._topic)
        fold.restore(tables.decode_state(SessionState, value) for _, value in state.items(tables.STATE_PREFIX))
        return fold

    def read(self, record: ConsumerRecord) -> LogRecord:
        return self._wire.read_log_record(record.value, record.offset, record.timestamp)

    def apply(self, fold: LogFold, read: LogRecord) -> list[Output | StepFailed]:
        outputs: list[Output | StepFailed] = [output for _, found in fold.apply(read) for output in found]
        for output in outputs:
            if isinstance(output, JournalEntry) and output.kind is JournalKind.LATE and output.detail:
                log.warning("late_score", session=output.session_id, metric=output.metric, reason=output.reason)
        return outputs

    def remember(self, fold: LogFold, partition: int) -> tables.Changes:
        touched, expired = fold.flush()
        return tables.changes(touched, fold.state, partition, expired)
