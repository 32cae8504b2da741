"""Records one trace and its spans while an agent works."""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from streams.client.records import Fields

SpanKind = Literal["AGENT", "TOOL", "LLM", "RETRIEVER", "CHAIN", "EMBEDDING", "OTHER"]

# Tasks started inside a span inherit it, so spans of concurrent tool calls find their parents.
_current: "ContextVar[SpanRecorder | None]" = ContextVar("tgate_span", default=None)


@dataclass(kw_only=True, eq=False)
class SpanRecorder:
    """One step of a trace, as a context manager; an exception marks it ERROR and goes on its way.

    input, output: any value JSON can hold, set at any time before the trace ends.
    """

    trace: "TraceRecorder" = field(repr=False)
    name: str
    kind: SpanKind = "OTHER"
    input: Any = None
    output: Any = None
    model: str | None = None
    token_usage: dict[str, int] = field(default_factory=dict)
    cost: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    model_parameters: dict[str, Any] = field(default_factory=dict)
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))
    parent_span_id: str | None = None
    status: str = "UNSET"
    error: str | None = None
    started_at: int = 0
    ended_at: int | None = None
    _token: "Token[SpanRecorder | None] | None" = field(default=None, repr=False)

    def __enter__(self) -> Self:
        self.started_at = now()
        outer = _current.get()
        if self.parent_span_id is None and outer is not None and outer.trace is self.trace:
            self.parent_span_id = outer.span_id
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._token is not None:
            _current.reset(self._token)
        self.ended_at = now()
        if error is not None:
            self.status, self.error = "ERROR", said(error)
        elif self.status == "UNSET":
            self.status = "OK"

    def fields(self) -> Fields:
        """Return the span as it is published."""
        names = (
            "span_id parent_span_id name kind status input output model token_usage cost metadata model_parameters "
            "started_at ended_at error"
        )
        return {name: getattr(self, name) for name in names.split()}


@dataclass(kw_only=True, eq=False)
class TraceRecorder:
    """One agent operation, as a context manager; it is published when the block ends.

    An exception marks it ERROR and goes on its way. `async with` waits where the gate was told to wait when its queue
    is full; `with` never waits.
    """

    offer: Callable[["TraceRecorder"], object] = field(repr=False)
    submit: Callable[["TraceRecorder"], Awaitable[object]] = field(repr=False)
    session_id: str
    name: str
    trace_id: str = field(default_factory=lambda: secrets.token_hex(16))
    project: str = "default"
    input: Any = None
    output: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()
    user_id: str | None = None
    environment: str | None = None
    release: str | None = None
    turn_index: int | None = None
    ends_turn: bool = True
    status: str = "COMPLETED"
    started_at: int = 0
    ended_at: int | None = None
    spans: list[SpanRecorder] = field(default_factory=list)
    scores: list[Fields] = field(default_factory=list)

    @property
    def turn_id(self) -> str:
        """The id of the turn that this trace closes."""
        return f"{self.session_id}/{self.trace_id}"

    def span(self, name: str, kind: SpanKind = "OTHER", **fields: Any) -> SpanRecorder:
        """Return a step to be entered; inside another one of this trace it becomes its child."""
        made = SpanRecorder(trace=self, name=name, kind=kind, **fields)
        self.spans.append(made)
        return made

    def score(self, metric: str, value: float | bool | str | None, **fields: Any) -> None:
        """Score this trace; published right after it. See Gate.submit_score for the fields."""
        self.scores.append({"metric": metric, "value": value, **fields})

    def __enter__(self) -> Self:
        self.started_at = now()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._end(error)
        self.offer(self)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)
        if error is None:
            await self.submit(self)
        else:
            # What went wrong, a cancellation for one, must not wait.
            self.offer(self)

    def _end(self, error: BaseException | None) -> None:
        self.ended_at = now()
        if error is not None:
            self.status = "ERROR"
            self.metadata = {**self.metadata, "error": said(error)}

    def fields(self) -> Fields:
        """Return the trace as it is published."""
        names = (
            "trace_id session_id project name status started_at ended_at input output metadata user_id environment "
            "release turn_index ends_turn"
        )
        found: Mapping[str, Any] = {name: getattr(self, name) for name in names.split()}
        spans = [span.fields() for span in self.spans if span.started_at]
        return {**found, "tags": [str(tag) for tag in self.tags], "spans": spans}


def now() -> int:
    """Return the time as traces and scores carry it."""
    return time.time_ns() // 1_000_000


def said(error: BaseException) -> str:
    """Return an exception in words."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  (an exception whose own words fail must still be told)
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
