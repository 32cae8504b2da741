"""What the benchmarks feed: valid records of the sizes they claim, which decide every turn and raise notices."""

from collections import Counter

from benchmarks.pipeline.records import METRICS, PER_TURN, Workload, records
from streams.core import session
from streams.core.model import Candidate, Position, Report
from streams.core.rules import Rules
from streams.core.session import SessionEvent
from streams.wire import Wire

WORKLOAD = Workload(records=9_000, live_sessions=100)


def test_sizes():
    traces = [len(record.value) for record in records(WORKLOAD) if record.is_trace]
    scores = [len(record.value) for record in records(WORKLOAD) if not record.is_trace]
    assert len(scores) == len(METRICS) * len(traces) == len(METRICS) * WORKLOAD.turns
    assert 3_500 < sum(traces) / len(traces) < 4_600
    assert 280 < sum(scores) / len(scores) < 350


def test_the_same_numbers_give_the_same_records():
    assert list(records(Workload(records=300))) == list(records(Workload(records=300)))


def test_every_turn_is_decided_and_some_are_told():
    wire, rules = Wire(), Rules(tier1_metrics=METRICS, tier2_metrics=())
    states, outputs, turns = {}, Counter(), Counter()
    for offset, record in enumerate(records(WORKLOAD)):
        read = wire.read_trace(record.value, record.key, 0) if record.is_trace else None
        read = read or wire.read_score(record.value, record.key, 0)
        assert read.session_id.encode() == record.key
        body = read.trace if record.is_trace else read.score
        event = SessionEvent(read.session_id, 1_000 + offset, Position(0, offset), body)
        states[read.session_id], found = session.step(states.get(read.session_id), event, rules)
        outputs.update(type(output) for output in found)
        turns[read.session_id] += record.is_trace
    assert outputs[Report] == sum(turns.values()) == WORKLOAD.records // PER_TURN
    assert max(turns.values()) == WORKLOAD.session_traces
    assert 0.01 < outputs[Candidate] / outputs[Report] < 0.2
