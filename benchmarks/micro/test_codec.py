"""The wire: one record read or written, and a session's state."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from benchmarks.micro.made import RULES, bodies, events, folded
from benchmarks.pipeline.records import Made, Workload, records
from streams.core import session
from streams.core.log import LogRecord, Source
from streams.core.model import Report
from streams.core.state import SessionState
from streams.wire import Wire, decode_state, encode_state

WIRE = Wire("json")


def made(is_trace: bool) -> Made:
    return next(record for record in records(Workload(records=30)) if record.is_trace is is_trace)


def log_record() -> LogRecord:
    score = list(islice(bodies(1), 2))[1]
    return LogRecord(5, 1_000, score, "session-1", Source("eval-scores", "an-id", 3, 17))


def report() -> Report:
    found = events(30)
    _, outputs = session.step(folded(found[:-1]), found[-1], RULES)
    return next(output for output in outputs if isinstance(output, Report))


def cases() -> dict[str, Callable[[], object]]:
    trace, score = made(is_trace=True), made(is_trace=False)
    record, decided = log_record(), report()
    stored_record = WIRE.write_internal(record)
    state = folded(events(100))
    stored = encode_state(state)
    return {
        "read a trace of 4 KiB from JSON": lambda: WIRE.read_trace(trace.value, trace.key, 0),
        "read a score from JSON": lambda: WIRE.read_score(score.value, score.key, 0),
        "write a log record": lambda: WIRE.write_internal(record),
        "read a log record": lambda: WIRE.read_log_record(stored_record, 5, 1_000),
        "write a report as JSON": lambda: WIRE.write(decided),
        "encode a session's state": lambda: encode_state(state),
        "decode a session's state": lambda: decode_state(SessionState, stored),
    }


@pytest.mark.parametrize("case", cases())
def test_codec(benchmark: Any, case: str) -> None:
    assert benchmark(cases()[case])
