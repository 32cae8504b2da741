"""Traces and scores as users may publish them."""

from hypothesis import strategies as st

from streams.core.model import ScoreSource, ScoreStatus, TraceStatus
from tests.wire.wire_records import ids, texts

times = st.integers(0, 2**47)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda held: st.lists(held, max_size=2) | st.dictionaries(texts, held, max_size=2),
    max_leaves=5,
)
objects = st.dictionaries(texts, json_values, max_size=3)
statuses = st.sampled_from([str(member) for member in TraceStatus])
spans = st.fixed_dictionaries(
    {"span_id": ids, "name": ids},
    optional={
        "parent_span_id": st.none() | ids,
        "kind": st.sampled_from(["AGENT", "TOOL", "LLM", "RETRIEVER", "CHAIN", "EMBEDDING", "OTHER"]),
        "status": st.sampled_from(["UNSET", "OK", "ERROR"]),
        "input": json_values,
        "output": json_values,
        "model": st.none() | texts,
        "token_usage": st.dictionaries(texts, st.integers(0, 10**9), max_size=3),
        "cost": st.none() | st.floats(0, 1000),
        "metadata": objects,
        "started_at": st.none() | times,
        "ended_at": st.none() | times,
        "completion_start_time": st.none() | times,
        "model_parameters": objects,
        "error": st.none() | texts,
    },
)
traces = st.fixed_dictionaries(
    {"trace_id": ids, "session_id": ids, "name": ids, "status": statuses, "started_at": times},
    optional={
        "project": ids,
        "ended_at": st.none() | times,
        "input": json_values,
        "output": json_values,
        "metadata": objects,
        "tags": st.lists(texts, max_size=3),
        "user_id": st.none() | texts,
        "environment": st.none() | texts,
        "release": st.none() | texts,
        "spans": st.lists(spans, max_size=2),
        "turn_index": st.none() | st.integers(0, 2**31 - 1),
        "ends_turn": st.booleans(),
    },
)
scores = st.fixed_dictionaries(
    {"score_id": ids, "session_id": ids, "name": ids, "value": st.floats(0, 1).map(repr)},
    optional={
        "trace_id": st.none() | ids,
        "target": st.sampled_from(["TRACE", "SESSION"]),
        "source": st.sampled_from([str(member) for member in ScoreSource]),
        "status": st.sampled_from([str(member) for member in ScoreStatus]),
        "reason": st.none() | texts,
        "metadata": objects,
        "eval_run_id": st.none() | ids,
        "created_at": st.none() | times,
    },
)
