"""OpenAI Agents SDK: a tracing processor that publishes every workflow as a trace."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from agents.tracing import Span, Trace, TracingProcessor

from streams.client.gate import Gate
from streams.client.recorder import now
from streams.client.records import Fields
from streams.wire.json_datums import milliseconds

logger = logging.getLogger(__name__)

OPEN: Final = 1_000
"""Workflows followed at once; the oldest is let go for a newer one."""
KINDS: Final[Mapping[str, str]] = {
    "agent": "AGENT",
    "function": "TOOL",
    "mcp_tools": "TOOL",
    "generation": "LLM",
    "response": "LLM",
    "guardrail": "CHAIN",
    "handoff": "CHAIN",
    "task": "CHAIN",
    "turn": "CHAIN",
}
_SAID_APART: Final = frozenset({"type", "name", "input", "output", "model", "model_config", "usage"})


class GateTracingProcessor(TracingProcessor):  # type: ignore[misc]
    """Passed to `agents.add_trace_processor`.

    session: of every workflow; none takes its group_id, and leaves out a workflow without one.
    """

    def __init__(self, gate: Gate, session: str | None = None, *, ends_turn: bool = True) -> None:
        self._gate, self._session, self._ends_turn = gate, session, ends_turn
        self._lock = threading.Lock()
        self._open: OrderedDict[str, tuple[int, list[Fields]]] = OrderedDict()
        self.unplaced = 0
        """Workflows that named no session."""

    def on_trace_start(self, trace: Trace) -> None:
        with self._lock:
            self._open[trace.trace_id] = now(), []
            if len(self._open) > OPEN:
                self._open.popitem(last=False)

    def on_span_start(self, span: Span[Any]) -> None:
        """Wait for its end: a span is published with its trace."""

    def on_span_end(self, span: Span[Any]) -> None:
        try:
            fields = _span(span)
        except Exception as error:  # noqa: BLE001  (a span that cannot be told must not break the agent)
            logger.warning("a span was left out: %s", type(error).__name__)
            return
        with self._lock:
            if span.trace_id in self._open:
                self._open[span.trace_id][1].append(fields)

    def on_trace_end(self, trace: Trace) -> None:
        with self._lock:
            started_at, spans = self._open.pop(trace.trace_id, (now(), []))
        said = trace.export() or {}
        session = self._session or said.get("group_id")
        if not session:
            self.unplaced += 1
            return
        # A workflow says neither what it was asked nor what it answered; its first and last model calls do.
        calls = [span for span in spans if span["kind"] == "LLM"] or spans
        root_failed = any(span["status"] == "ERROR" and span["parent_span_id"] is None for span in spans)
        self._gate.offer_trace(
            {
                "trace_id": trace.trace_id,
                "session_id": str(session),
                "name": trace.name,
                "status": "ERROR" if root_failed else "COMPLETED",
                "started_at": started_at,
                "ended_at": now(),
                "input": calls[0]["input"] if calls else None,
                "output": calls[-1]["output"] if calls else None,
                "metadata": said.get("metadata") or {},
                "spans": spans,
                "ends_turn": self._ends_turn,
            }
        )

    def shutdown(self) -> None:
        """Let go of what is open; the gate is closed by whoever opened it."""
        with self._lock:
            self._open.clear()

    def force_flush(self) -> None:
        """Do nothing: the gate sends by itself, and is flushed by its owner."""


def _span(span: Span[Any]) -> Fields:
    data = span.span_data
    exported = data.export()
    error = span.error
    response = getattr(data, "response", None)
    output = getattr(response, "output", None) if response is not None else exported.get("output")
    config = exported.get("model_config")
    return {
        "span_id": span.span_id,
        "parent_span_id": span.parent_id,
        "name": str(exported.get("name") or data.type),
        "kind": KINDS.get(data.type, "OTHER"),
        "status": "ERROR" if error else "OK",
        "input": getattr(data, "input", exported.get("input")),
        "output": _dumped(output),
        "model": getattr(response, "model", None) or exported.get("model"),
        "token_usage": _usage(exported.get("usage")),
        "metadata": {name: value for name, value in exported.items() if name not in _SAID_APART and value is not None},
        "model_parameters": config if isinstance(config, dict) else {},
        "started_at": _ms(span.started_at),
        "ended_at": _ms(span.ended_at),
        "error": None if not error else f"{error['message']} {error.get('data') or ''}".strip(),
    }


def _dumped(value: Any) -> Any:
    """Return the SDK's models as plain data."""
    if isinstance(value, list | tuple):
        return [_dumped(item) for item in value]
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else value


def _usage(usage: Any) -> dict[str, int]:
    if not isinstance(usage, dict):
        return {}
    return {
        name.removesuffix("_tokens"): value
        for name, value in usage.items()
        if name.endswith("_tokens") and isinstance(value, int) and value >= 0
    }


def _ms(time: str | None) -> int | None:
    return None if time is None else milliseconds(time)
