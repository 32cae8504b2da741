"""LangChain and LangGraph: every root run becomes a trace, the runs inside it become its spans."""

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from streams.client.gate import Gate
from streams.client.records import Fields

logger = logging.getLogger(__name__)

KINDS: Final[Mapping[str, str]] = {
    "chain": "CHAIN",
    "llm": "LLM",
    "chat_model": "LLM",
    "tool": "TOOL",
    "retriever": "RETRIEVER",
    "embedding": "EMBEDDING",
}
SESSIONS: Final = ("session_id", "conversation_id", "thread_id")
_USAGE: Final = ("input_tokens", "output_tokens", "total_tokens")


class GateCallbackHandler(BaseTracer):  # type: ignore[misc]
    """Passed as `config={"callbacks": [GateCallbackHandler(gate)]}`.

    session: of every run; none takes session_id, conversation_id or thread_id from the run's metadata, as LangGraph
        gives it, and leaves out a run that has none of them.
    """

    run_inline = True

    def __init__(self, gate: Gate, session: str | None = None, *, ends_turn: bool = True) -> None:
        super().__init__()
        self._gate, self._session, self._ends_turn = gate, session, ends_turn
        self.unplaced = 0
        """Root runs that named no session."""

    def _persist_run(self, run: Run) -> None:
        try:
            fields = self._fields(run)
        except Exception as error:  # noqa: BLE001  (a run that cannot be told must not break the chain)
            logger.warning("a run was not published: %s", type(error).__name__)
            return
        if fields["session_id"] is None:
            self.unplaced += 1
        else:
            self._gate.offer_trace(fields)

    def _fields(self, run: Run) -> Fields:
        metadata = _metadata(run)
        found = next((str(metadata[name]) for name in SESSIONS if metadata.get(name)), None)
        return {
            "trace_id": str(run.id),
            "session_id": self._session or found,
            "name": run.name,
            "status": "ERROR" if run.error else "COMPLETED",
            "started_at": _ms(run.start_time),
            "ended_at": _ms(run.end_time),
            "input": run.inputs,
            "output": run.outputs,
            "metadata": metadata,
            "tags": list(run.tags or ()),
            "spans": [_span(child) for child in _below(run)],
            "ends_turn": self._ends_turn,
        }


def _below(run: Run) -> Iterator[Run]:
    # A root that is itself a call of a model or a tool is its own only span.
    if not run.child_runs and run.run_type in KINDS and run.run_type != "chain":
        yield run
    waiting = list(reversed(run.child_runs))
    while waiting:
        child = waiting.pop()
        yield child
        waiting.extend(reversed(child.child_runs))


def _span(run: Run) -> Fields:
    metadata = _metadata(run)
    invocation = (run.extra or {}).get("invocation_params") or {}
    return {
        "span_id": str(run.id),
        "parent_span_id": str(run.parent_run_id) if run.parent_run_id else None,
        "name": run.name,
        "kind": KINDS.get(run.run_type, "OTHER"),
        "status": "ERROR" if run.error else "OK",
        "input": run.inputs,
        "output": run.outputs,
        "model": metadata.get("ls_model_name"),
        "token_usage": _usage(run.outputs),
        "metadata": metadata,
        "model_parameters": invocation if isinstance(invocation, dict) else {},
        "started_at": _ms(run.start_time),
        "ended_at": _ms(run.end_time),
        "error": run.error,
    }


def _metadata(run: Run) -> dict[str, Any]:
    return dict((run.extra or {}).get("metadata") or {})


def _usage(outputs: Any) -> dict[str, int]:
    """Return the tokens that a chat model's first answer says it used."""
    try:
        message = outputs["generations"][0][0]["message"]
        usage = message["kwargs"]["usage_metadata"] if isinstance(message, dict) else message.usage_metadata
        return {name.removesuffix("_tokens"): int(usage[name]) for name in _USAGE if name in usage}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return {}


def _ms(time: datetime | None) -> int | None:
    if time is None:
        return None
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return int(zoned.timestamp() * 1000)
