"""Ten thousand malformed records: each is refused with a reason or taken in, and none stops the stream."""

import json
import random
from collections import Counter

import pytest

from streams.core.log import LogFold, LogRecord, PartitionState, Source
from streams.core.model import StepFailed
from streams.core.rules import Rules
from streams.core.session import Tick
from streams.errors import InvalidRecord
from streams.wire import Wire, encode_state

RECORDS = 5_000
WIRE = Wire()
SPAN = {"span_id": "p", "name": "tool", "kind": "TOOL", "status": "OK", "input": "{}", "started_at": 1, "ended_at": 2}
TRACE = {
    "trace_id": "t1",
    "session_id": "s1",
    "project": "p",
    "name": "step",
    "status": "COMPLETED",
    "started_at": 1_767_603_600_000,
    "input": '"what to do"',
    "metadata": {"deep": [1, {"er": None}]},
    "tags": ["a"],
    "spans": [SPAN, SPAN | {"span_id": "q", "parent_span_id": "p"}],
    "turn_index": 1,
}
SCORE = {
    "score_id": "x1",
    "session_id": "s1",
    "trace_id": "t1",
    "name": "task_completion",
    "value": "0.5",
    "reason": "7 of 16 steps remain",
    "metadata": {"threshold": 0.5, "flagged_traces": ["t1", "t2"]},
    "created_at": 1_767_603_600_000,
}
ODD = [
    None,
    "",
    "x" * 300,
    -1,
    2**63,
    1e308,
    True,
    [],
    {},
    [[]],
    "\x1b[2J",
    "NaN",
    "\u202e",
    {"a": 1},
    "1e-400",
    0.5,
    "𝔸",
]


def of_odd_values(chance: random.Random, fields: dict[str, object]) -> bytes:
    """A record with some fields gone, renamed, or holding what they should not."""
    fields = dict(fields)
    for name in chance.sample(sorted(fields), chance.randint(1, 3)):
        match chance.randrange(3):
            case 0:
                del fields[name]
            case 1:
                fields[name + "?"] = fields.pop(name)
            case _:
                fields[name] = chance.choice(ODD)
    return json.dumps(fields).encode()


def of_damaged_bytes(chance: random.Random, value: bytes) -> bytes:
    """A record with bytes changed, gone, doubled, cut or added."""
    damaged = bytearray(value)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(5):
            case 0:
                damaged[at:at] = chance.randbytes(chance.randint(1, 12))
            case 1:
                del damaged[at : at + chance.randint(1, 12)]
            case 2:
                damaged[at:at] = damaged[at : at + 20]
            case 3:
                del damaged[at:]
            case _:
                damaged[at : at + 1] = chance.randbytes(1)
        if not damaged:
            return b""
    return bytes(damaged)


@pytest.mark.parametrize(("name", "fields"), [("Trace", TRACE), ("Score", SCORE)])
def test_malformed_records(name, fields):
    chance = random.Random(20_260_105 + len(name))
    read = WIRE.read_trace if name == "Trace" else WIRE.read_score
    sound = [WIRE.write_input(name, fields, "avro"), WIRE.write_input(name, fields, "json")]
    fold = LogFold(0, PartitionState(), {}.get)
    fold.apply(LogRecord(0, 0, Rules(percentile_window=3, adaptive_threshold=True)))
    came: Counter[str] = Counter()
    silent = 0
    for offset in range(1, RECORDS + 1):
        odd = chance.random() < 0.5
        value = of_odd_values(chance, fields) if odd else of_damaged_bytes(chance, chance.choice(sound))
        try:
            found = read(value, chance.choice([b"s1", None, b"\xff"]), offset)
        except InvalidRecord as refused:
            silent += not str(refused)
            came[type(refused).__name__] += 1
            continue
        came["accepted"] += 1
        body = found.trace if name == "Trace" else found.score
        source = Source(name, "", 0, offset)
        again = WIRE.read_log_record(
            WIRE.write_internal(LogRecord(offset, offset, body, found.session_id, source)), offset, offset
        )
        for record in (again, LogRecord(offset, offset, Tick(offset))):
            for _, outputs in fold.apply(record):
                for output in outputs:
                    assert not isinstance(output, StepFailed), output
                    WIRE.write(output, "json")
                    WIRE.write_internal(output)
    for state in fold.flush()[0].values():
        encode_state(state)
    assert came.total() == RECORDS
    assert not silent
    assert came["accepted"] > RECORDS // 20
    assert {"InvalidValue", "SchemaMismatch", "UnknownFormat"} <= came.keys()
