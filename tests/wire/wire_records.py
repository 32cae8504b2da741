"""Records of every class the wire knows, made up from their shapes."""

import copy
import json
from pathlib import Path

from hypothesis import strategies as st

from streams.core.breaker import BreakerState
from streams.core.candidates import CandidatePartitionState
from streams.core.eval_log import EvalLogRecord, EvalPartitionState
from streams.core.eval_states import AnsweredRequest, RequestState, Spending, StagePosition, TraceSignals
from streams.core.log import LogRecord, PartitionState
from streams.core.model import (
    BreakerReset,
    Candidate,
    EvalCase,
    EvalRequest,
    JournalEntry,
    NeedsHuman,
    Notice,
    Report,
    TurnSettled,
)
from streams.core.monitors import Monitor, MonitorState
from streams.core.rules import Rules
from streams.core.runs import EvalRun, RunState
from streams.core.state import SessionState
from streams.wire import schemas, shapes

DECISIONS = (Report, Candidate, BreakerReset, Notice, NeedsHuman, TurnSettled, JournalEntry, EvalRequest, EvalCase)
OUTPUTS = (*DECISIONS, EvalRun, Monitor)
EVAL_STATES = (RunState, MonitorState, EvalPartitionState)
STAGE_STATES = (StagePosition, TraceSignals, RequestState, AnsweredRequest, Spending)
STATES = (SessionState, PartitionState, BreakerState, CandidatePartitionState, *EVAL_STATES, *STAGE_STATES)
RECORDS = (LogRecord, EvalLogRecord, *OUTPUTS, *STATES)
TOP = ("Trace", "Score", "KeptTrace", *(shapes.schema_name(made) for made in RECORDS))

texts = st.text(st.characters(codec="utf-8"), max_size=12)
ids = st.text(st.characters(codec="utf-8").filter(str.isprintable), min_size=1, max_size=12)
longs = st.integers(-(2**63), 2**63 - 1)
rules = st.sampled_from([Rules(), Rules(gate_window=3, thresholds={"coherence": 0.4})])

PLAIN = {
    "string": texts,
    "long": longs | st.integers(0, 2**45),
    "int": st.integers(-(2**31), 2**31 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
}


def records(made):
    """Return a strategy for records of a core class; what Kafka holds is 7."""
    return _of(shapes.record(made))


def _of(shape):  # noqa: C901, PLR0911 - one for each kind
    match shape:
        case shapes.Plain():
            return PLAIN[shape.kind]
        case shapes.Choice():
            return st.sampled_from(list(shape.members))
        case shapes.Maybe():
            return st.none() | _of(shape.held)
        case shapes.Rows():
            return st.lists(_of(shape.item), max_size=3).map(tuple)
        case shapes.Packed():
            return st.lists(longs, max_size=3).map(tuple)
        case shapes.Table():
            return st.dictionaries(texts, _of(shape.value), max_size=2)
        case shapes.Entries():
            return st.dictionaries(_side(shape.key), _side(shape.value), max_size=2)
        case shapes.Parts():
            return st.tuples(*(_of(part) for _, part in shape.fields))
        case shapes.RulesText():
            return rules
        case shapes.OneOf():
            return st.one_of([_of(branch) for branch in shape.branches])
        case shapes.Record():
            fields = {name: _of(field) for name, field in shape.fields}
            return st.builds(shape.made, **fields, **{name: st.just(7) for name in shape.given})


def _side(side):
    return _of(side.fields[0][1]) if len(side.fields) == 1 else _of(side)


def definitions():
    """Return what every .avsc file says, by name, to be edited."""
    return {name: json.loads(Path(schemas.directory(), f"{name}.avsc").read_text("utf-8")) for name in schemas.names()}


def complete(name, found):
    """Return one schema put together from (edited) definitions."""
    defined = set()

    def put(definition):
        if isinstance(definition, list):
            return [put(branch) for branch in definition]
        if isinstance(definition, str):
            short = definition.removeprefix("trajectory_gate.")
            if short not in found or short in defined:
                return definition
            defined.add(short)
            return put(found[short])
        whole = copy.copy(definition)
        for part in {"items", "values"} & whole.keys():
            whole[part] = put(whole[part])
        if whole["type"] == "record":
            whole["fields"] = [{**field, "type": put(field["type"])} for field in whole["fields"]]
        return whole

    return put(f"trajectory_gate.{name}")
