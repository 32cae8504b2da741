"""OpenTelemetry: spans of the GenAI conventions, gathered by trace and published when the root span ends."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id

from streams.client.gate import Gate
from streams.client.records import Fields

logger = logging.getLogger(__name__)

OPEN: Final = 1_000
"""Traces gathered at once; the oldest is let go for a newer one."""
SPANS: Final = 1_000
"""Spans kept of one trace."""
SESSIONS: Final = ("gen_ai.conversation.id", "session.id")
KINDS: Final[Mapping[str, str]] = {
    "chat": "LLM",
    "text_completion": "LLM",
    "generate_content": "LLM",
    "embeddings": "EMBEDDING",
    "execute_tool": "TOOL",
    "retrieval": "RETRIEVER",
    "invoke_agent": "AGENT",
    "create_agent": "AGENT",
    "invoke_workflow": "CHAIN",
}
_INPUTS: Final = ("gen_ai.input.messages", "gen_ai.tool.call.arguments", "gen_ai.prompt", "input.value")
_OUTPUTS: Final = ("gen_ai.output.messages", "gen_ai.tool.call.result", "gen_ai.completion", "output.value")
_PARAMETERS: Final = ("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty")


class _Gathering:
    """Spans by trace, until the local root ends: children end before their parents."""

    def __init__(self, gate: Gate, session: str | None, *, ends_turn: bool) -> None:
        self._gate, self._session, self._ends_turn = gate, session, ends_turn
        self._lock = threading.Lock()
        self._open: OrderedDict[int, list[ReadableSpan]] = OrderedDict()
        self.unplaced = 0

    def add(self, span: ReadableSpan) -> None:
        context = span.context
        if context is None:
            return
        is_root = span.parent is None or span.parent.is_remote
        with self._lock:
            held = self._open.setdefault(context.trace_id, [])
            if len(held) < SPANS or is_root:
                held.append(span)
            spans = self._open.pop(context.trace_id) if is_root else []
            if len(self._open) > OPEN:
                self._open.popitem(last=False)
        if is_root:
            self._publish(span, spans)

    def _publish(self, root: ReadableSpan, spans: list[ReadableSpan]) -> None:
        try:
            fields = self._fields(root, spans)
        except Exception as error:  # noqa: BLE001  (a trace that cannot be told must not break the program)
            logger.warning("a trace was not published: %s", type(error).__name__)
            return
        if fields is not None:
            self._gate.offer_trace(fields)

    def _fields(self, root: ReadableSpan, spans: list[ReadableSpan]) -> Fields | None:
        if not any(_is_agents(span) for span in spans):
            return None  # a trace of something else in the same program
        session = self._session or _session([root, *spans])
        if session is None:
            self.unplaced += 1
            return None
        told = sorted((_span(span) for span in spans), key=lambda span: span["started_at"] or 0)
        own = next(span for span in told if span["span_id"] == _id_of(root))
        calls = [span for span in told if span["kind"] == "LLM"]
        return {
            "trace_id": format_trace_id(root.context.trace_id),
            "session_id": session,
            "name": root.name,
            "status": "ERROR" if root.status.status_code is StatusCode.ERROR else "COMPLETED",
            "started_at": own["started_at"],
            "ended_at": own["ended_at"],
            "input": own["input"] if own["input"] is not None or not calls else calls[0]["input"],
            "output": own["output"] if own["output"] is not None or not calls else calls[-1]["output"],
            "metadata": own["metadata"],
            "spans": told,
            "ends_turn": self._ends_turn,
        }


class GateSpanProcessor(SpanProcessor):  # type: ignore[misc]
    """Passed to `TracerProvider.add_span_processor`.

    session: of every trace; none takes gen_ai.conversation.id, or session.id, from its spans and leaves out a trace
        without one. Traces without any GenAI span are left alone.
    """

    def __init__(self, gate: Gate, session: str | None = None, *, ends_turn: bool = True) -> None:
        self._gathering = _Gathering(gate, session, ends_turn=ends_turn)

    @property
    def unplaced(self) -> int:
        """Agents' traces that named no session."""
        return self._gathering.unplaced

    def on_end(self, span: ReadableSpan) -> None:
        self._gathering.add(span)


class GateSpanExporter(SpanExporter):  # type: ignore[misc]
    """The same as an exporter, for a BatchSpanProcessor."""

    def __init__(self, gate: Gate, session: str | None = None, *, ends_turn: bool = True) -> None:
        self._gathering = _Gathering(gate, session, ends_turn=ends_turn)

    @property
    def unplaced(self) -> int:
        """Agents' traces that named no session."""
        return self._gathering.unplaced

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            self._gathering.add(span)
        return SpanExportResult.SUCCESS


def _is_agents(span: ReadableSpan) -> bool:
    return any(name.startswith("gen_ai.") for name in span.attributes or ())


def _session(spans: Sequence[ReadableSpan]) -> str | None:
    for span in spans:
        for name in SESSIONS:
            if value := (span.attributes or {}).get(name):
                return str(value)
    return None


def _span(span: ReadableSpan) -> Fields:
    said: dict[str, Any] = dict(span.attributes or {})
    failed = span.status.status_code is StatusCode.ERROR
    return {
        "span_id": _id_of(span),
        "parent_span_id": None if span.parent is None else format_span_id(span.parent.span_id),
        "name": str(said.get("gen_ai.tool.name") or said.get("gen_ai.agent.name") or span.name),
        "kind": KINDS.get(str(said.get("gen_ai.operation.name")), "OTHER"),
        "status": "ERROR" if failed else "OK",
        "input": _first(said, _INPUTS),
        "output": _first(said, _OUTPUTS),
        "model": _text(said.get("gen_ai.response.model") or said.get("gen_ai.request.model")),
        "token_usage": _usage(said),
        "metadata": {name: value for name, value in said.items() if name not in {*_INPUTS, *_OUTPUTS}},
        "model_parameters": {
            name: value for name in _PARAMETERS if (value := said.get(f"gen_ai.request.{name}")) is not None
        },
        "started_at": _ms(span.start_time),
        "ended_at": _ms(span.end_time),
        "error": (span.status.description or _text(said.get("error.type")) or "error") if failed else None,
    }


def _first(said: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first of these attributes; JSON in a text as what it says, for attributes hold no objects."""
    for name in names:
        if (value := said.get(name)) is not None:
            if isinstance(value, str) and value[:1] in ("{", "["):
                try:
                    return orjson.loads(value)
                except orjson.JSONDecodeError:
                    return value
            return value
    return None


def _usage(said: Mapping[str, Any]) -> dict[str, int]:
    found = {name: said.get(f"gen_ai.usage.{name}_tokens") for name in ("input", "output")}
    return {name: value for name, value in found.items() if isinstance(value, int) and value >= 0}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _id_of(span: ReadableSpan) -> str:
    return str(format_span_id(span.context.span_id))


def _ms(time: int | None) -> int | None:
    return None if time is None else time // 1_000_000
