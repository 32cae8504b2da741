"""What the pure core makes of the logs, to hold against what the running pipeline published."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from aiokafka import ConsumerRecord

from streams.agents.outbox import INTERNAL, ROLES
from streams.core.breaker import BreakerState
from streams.core.candidates import CandidateRecord
from streams.core.state import SessionState
from streams.replay.folding import CandidateReplay, Replay
from streams.topics import DETECTION, EVAL_REQUESTS, NOTICE_CANDIDATES, SESSION_LOG, TURN_REPORTS
from streams.wire import Wire
from tests.pipeline.harness import Pipeline

SESSION_ONLY = (TURN_REPORTS, NOTICE_CANDIDATES, EVAL_REQUESTS)


def fold_session_log(
    wire: Wire, records: Iterable[ConsumerRecord], topic: str
) -> tuple[list[Any], dict[str, SessionState]]:
    """Fold every partition from its start; returns the outputs and the final states."""
    replay = Replay(topic=topic)
    outputs = [
        output
        for record in records
        for output in replay.apply(
            record.partition, wire.read_log_record(record.value, record.offset, record.timestamp)
        )
    ]
    assert not replay.failed
    return outputs, replay.states


def fold_candidates(wire: Wire, records: Iterable[ConsumerRecord]) -> tuple[list[Any], dict[str, BreakerState]]:
    """Fold every partition from its start; returns the outputs and the final states."""
    replay = CandidateReplay()
    outputs = [
        output
        for record in records
        for output in replay.apply(record.partition, CandidateRecord(record.offset, wire.read_candidate(record.value)))
    ]
    assert not replay.failed
    return outputs, replay.states


def assert_equals_refold(pipeline: Pipeline) -> dict[str, int]:
    """Assert that every topic holds exactly what the folds of the two logs put out; returns the distinct counts."""
    wire = Wire.of(pipeline.settings)
    outputs, _ = fold_session_log(wire, pipeline.read(SESSION_LOG), pipeline.topics[SESSION_LOG].name)
    more, _ = fold_candidates(wire, pipeline.read(NOTICE_CANDIDATES))
    expected: dict[str, set[bytes]] = defaultdict(set)
    for output in [*outputs, *more]:
        role = ROLES[type(output)]
        expected[role].add(wire.write_internal(output) if role in INTERNAL else wire.write(output))
    for role in DETECTION.intersection(ROLES.values()):
        assert {record.value for record in pipeline.read(role)} == expected[role], role
    return {role: len(values) for role, values in expected.items()}
