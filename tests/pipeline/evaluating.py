"""A pipeline whose scores come from evaluators: what is published, asked for, scored and remembered."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from streams.core.bits import count
from streams.core.eval_states import RequestState
from streams.core.model import EvalRequest
from streams.wire import Wire, decode_state
from tests.pipeline.harness import Pipeline

START = 1_767_603_600_000
ASKING = {
    "request_evals": True,
    "tier1_metrics": "coherence,loop_detection",
    "tier2_metrics": "tool_correctness,argument_correctness",
    "gate_window": 3,
    "tick_interval_s": 0.2,
}
QUESTION = "How do I open the locked door of the north tower?"
DOUBLES = "tests.pipeline.evaluator_doubles"


def trace(session: str, number: int, output: str | None, **more: object) -> dict[str, object]:
    return {
        "session_id": session,
        "trace_id": f"{session}-{number}",
        "name": "step",
        "status": "COMPLETED",
        "started_at": START + number * 60_000,
        "input": json.dumps(QUESTION),
        "output": None if output is None else json.dumps(output),
        **more,
    }


def tool(number: int, **more: object) -> dict[str, object]:
    return {"span_id": f"call-{number}", "kind": "TOOL", "name": "open_door", "input": '{"key": "iron"}', **more}


def evaluators(running: Pipeline, **overrides: Any) -> Any:
    """Start an evaluators' worker."""
    number = len(running.workers)
    return running.start_worker(arguments=("evaluators",), state_dir=f"{running.directory}/{number}", **overrides)


def trying(running: Pipeline, **overrides: Any) -> Any:
    """Start an evaluators' worker with the double."""
    number = len(running.workers)
    arguments, state_dir = (str(running.directory),), f"{running.directory}/{number}"
    return running.start_worker(DOUBLES, arguments, state_dir=state_dir, **overrides)


def calls(running: Pipeline) -> list[str]:
    """Return what the double was asked, as trace and metric."""
    written = running.directory / "calls"
    return written.read_text().splitlines() if written.exists() else []


def scores(running: Pipeline) -> dict[tuple[str | None, str], dict[str, Any]]:
    """Return scores by trace and metric, each of them there once."""
    found = running.values("eval-scores")
    by_target = {(item["trace_id"] or item["eval_run_id"], item["name"]): item for item in found}
    assert len(by_target) == len(found), Counter((item["trace_id"], item["name"]) for item in found)
    return by_target


def requests(running: Pipeline) -> list[EvalRequest]:
    """Return what the ladder has asked for."""
    return [Wire().read(EvalRequest, record.value) for record in running.read("eval-requests")]


def remembered(running: Pipeline) -> int:
    """Return how many scores of open requests are noted as acknowledged in the changelog."""
    stored = {record.key: record.value for record in running.read("eval-request-states")}
    states = [decode_state(RequestState, value) for key, value in stored.items() if key.startswith(b"r/") and value]
    return sum(count(state.answered) for state in states)


def reports(running: Pipeline, lane: str = "trace") -> dict[str, dict[str, Any]]:
    return {item["turn_id"]: item for item in running.values("turn-reports") if item["lane"] == lane}


def ask(running: Pipeline, *requests: EvalRequest) -> None:
    """Put requests into their topic, where the session stage would."""
    wire = Wire.of(running.settings)
    running.publish(("eval-requests", wire.write_internal(item), item.session_id.encode()) for item in requests)


def request(session: str, trace_ids: Iterable[str], metrics: Iterable[str], **more: Any) -> EvalRequest:
    fields = {"turn_id": f"{session}/turn", "tier": 1, "attempt": 1, "requested_at": START, "project": "default"}
    fields |= {"run_id": f"run of {session}"} | more
    return EvalRequest(session_id=session, trace_ids=tuple(trace_ids), metrics=tuple(metrics), **fields)
