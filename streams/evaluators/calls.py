"""What a trace's spans say of its calls: which failed, brought nothing new, went back and forth, or came back empty.

Facts only: nothing is guessed from what texts mean. A call is a span of kind TOOL or RETRIEVER. It has failed if its
span says so, or if its output says so in one of the ways in which tools usually do, see `tells_failure`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

CALL_KINDS: Final = frozenset({"TOOL", "RETRIEVER"})

_SAYS_ERROR: Final = re.compile(
    r"\s*(error\s*[:!]|error (calling|executing|invoking|running|while)\b|an error occurred|traceback \(most recent)",
    re.IGNORECASE,
)
_FAILED_WORDS: Final = frozenset({"error", "failed", "failure"})
_INNER: Final = ("output", "content", "result", "text")
"""Fields in which frameworks wrap what a tool said."""
_DEEPEST: Final = 4
_NOT_RECORDED: Final = "null"


class Fault(StrEnum):
    """What can be said against a call, the worst first."""

    FAILED = "failed"
    PING_PONG = "ping_pong"
    """Two calls in turns, for the second time at least, and this one brought nothing new."""
    REPEATED = "repeated"
    """The same call had the same result before."""
    EMPTY = "empty_output"


class Call(NamedTuple):
    """One call as its span has it."""

    name: str
    arguments: str
    """As JSON text that is the same for the same arguments."""
    result: str
    """The same for the same result; empty where the span says nothing."""
    failed: bool


class Judged(NamedTuple):
    """A call and what can be said against it."""

    call: Call
    fault: Fault | None
    failures_in_a_row: int
    """Up to this call and with it."""
    works_later: bool
    """Whether the same tool succeeds later in the trace."""


def calls_of(trace: Mapping[str, Any]) -> list[Call]:
    """Return a whole trace's calls in the order in which they started; without all starts, as the spans stand."""
    spans = [span for span in trace["spans"] if span["kind"] in CALL_KINDS]
    if all(span["started_at"] is not None for span in spans):
        spans.sort(key=lambda span: span["started_at"])
    return [_call(span) for span in spans]


def judged(calls: Sequence[Call], before: Iterable[Call] = ()) -> list[Judged]:
    """Say of each call what stands against it; *before* are those of the session's earlier traces."""
    earlier = list(before)
    everything = [*earlier, *calls]
    faults = list(_faults(everything))
    working: set[str] = set()
    later = []
    for call in reversed(everything):
        later.append(call.name in working)
        if not call.failed:
            working.add(call.name)
    row, found = 0, []
    for call, fault, works_later in zip(everything, faults, reversed(later), strict=True):
        row = row + 1 if call.failed else 0
        found.append(Judged(call, fault, row, works_later))
    return found[len(earlier) :]


def tells_failure(value: Any) -> bool:
    """Whether an output says that the call has failed.

    Text does by beginning with `Error:`, with what frameworks make of an exception, or with a traceback; an object by
    `error` with something in it, `isError` or `is_error` true, `ok` or `success` false, `status` error or failed, or
    by what it wraps.
    """
    return any(_tells_failure(said) for said in _unwrapped(value, 0))


def _tells_failure(said: Any) -> bool:
    if isinstance(said, str):
        return _SAYS_ERROR.match(said) is not None
    if not isinstance(said, dict):
        return False
    return (
        bool(said.get("error"))
        or said.get("isError") is True
        or said.get("is_error") is True
        or said.get("ok") is False
        or said.get("success") is False
        or str(said.get("status")).lower() in _FAILED_WORDS
    )


def _unwrapped(value: Any, depth: int) -> Iterator[Any]:
    yield value
    if isinstance(value, dict) and depth < _DEEPEST:
        for name in _INNER:
            if name in value:
                yield from _unwrapped(value[name], depth + 1)


def decoded(held: str | None) -> Any:
    """Return what JSON text holds; what is no JSON stands as it is."""
    try:
        return None if held is None else json.loads(held)
    except (ValueError, RecursionError):
        return held


def blank(value: Any) -> bool:
    """Whether an output says nothing: none, empty, or white space."""
    return value in (None, [], {}) or (isinstance(value, str) and not value.strip())


def _call(span: Mapping[str, Any]) -> Call:
    output, error = decoded(span["output"]), span["error"] or ""
    failed = span["status"] == "ERROR" or bool(error) or tells_failure(output)
    result = error if blank(output) else _canonical(span["output"])
    return Call(span["name"], _canonical(span["input"]), result, failed)


def _canonical(held: str | None) -> str:
    if held is None:
        return _NOT_RECORDED
    try:
        return json.dumps(json.loads(held), sort_keys=True)
    except (ValueError, RecursionError):
        return held


def _faults(calls: Sequence[Call]) -> Iterator[Fault | None]:
    # Where no call has arguments, or no output, they are not recorded: that none is there says nothing.
    arguments_recorded = any(call.arguments != _NOT_RECORDED for call in calls)
    outputs_recorded = any(call.result for call in calls)
    seen: set[Call] = set()
    keys = [(call.name, call.arguments) for call in calls]
    for place, call in enumerate(calls):
        nothing_new = outputs_recorded and (not call.result or call in seen)
        seen.add(call)
        in_turns = place >= 3 and keys[place - 3 : place - 1] == keys[place - 1 : place + 1]
        if call.failed:
            yield Fault.FAILED
        elif nothing_new and arguments_recorded and in_turns and keys[place] != keys[place - 1]:
            yield Fault.PING_PONG
        elif nothing_new and arguments_recorded and call.result:
            yield Fault.REPEATED
        else:
            yield Fault.EMPTY if outputs_recorded and not call.result else None
