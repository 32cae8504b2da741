"""What an eval run goes over: which traces or sessions its filters pick, and which of them its sampling takes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from streams.core.ids import digest
from streams.core.model import ScoreTarget, TraceStatus
from streams.errors import BadRun


@dataclass(frozen=True, slots=True)
class Filters:
    """What picks a run's traces or sessions; each is left out while it is none or empty, and all given must hold."""

    trace_ids: tuple[str, ...] = ()
    """Traces named one by one, instead of any other filter."""
    session_ids: tuple[str, ...] = ()
    """Sessions named one by one, instead of any other filter."""
    date_from: int | None = None
    """started_at at or after this, milliseconds since 1970, UTC."""
    date_to: int | None = None
    """started_at before this."""
    status: TraceStatus | None = None
    session_id: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()
    """At least one of them."""
    name: str | None = None
    """A part of the trace's name, in any case."""
    has_error: bool | None = None
    """Whether one of the session's traces is an ERROR."""
    min_trace_count: int | None = None
    """At least so many of the session's traces."""


_BOTH: Final = ("date_from", "date_to", "user_id", "tags")
ALLOWED: Final[Mapping[ScoreTarget, tuple[str, ...]]] = {
    ScoreTarget.TRACE: ("trace_ids", *_BOTH, "status", "session_id", "name"),
    ScoreTarget.SESSION: ("session_ids", *_BOTH, "has_error", "min_trace_count"),
}
"""The filters that a run over a target can have."""


class TraceFacts(NamedTuple):
    """What filters look at of one trace."""

    trace_id: str
    session_id: str
    project: str
    started_at: int
    status: TraceStatus
    name: str = ""
    user_id: str | None = None
    tags: tuple[str, ...] = ()


def facts(whole: Mapping[str, Any]) -> TraceFacts:
    """Return what filters look at of a whole trace, fields as the schema Trace has them."""
    return TraceFacts(
        whole["trace_id"],
        whole["session_id"],
        whole["project"],
        whole["started_at"],
        TraceStatus(whole["status"]),
        whole["name"],
        whole["user_id"],
        tuple(whole["tags"]),
    )


def merged(known: TraceFacts | None, update: TraceFacts) -> TraceFacts:
    """Return what is known of a trace once it was published again."""
    if known is None:
        return update
    return update._replace(
        user_id=known.user_id if update.user_id is None else update.user_id,
        tags=tuple(dict.fromkeys((*known.tags, *update.tags))),
    )


def check_filters(filters: Filters, target: ScoreTarget) -> None:
    """See that a run over *target* can have these filters.

    Raises:
        BadRun: one is for the other target, stands beside named ids, or can never hold.
    """
    given = [field.name for field in fields(filters) if getattr(filters, field.name) not in (None, ())]
    for name in given:
        if name not in ALLOWED[target]:
            raise BadRun(f"a run over a {target} has no filter {name}; it can have {', '.join(ALLOWED[target])}")
    named = {"trace_ids", "session_ids"}.intersection(given)
    if named and len(given) > 1:
        raise BadRun(f"{named.pop()} name what to go over: leave out {', '.join(sorted({*given} - named))}")
    if filters.date_from is not None and filters.date_to is not None and filters.date_from >= filters.date_to:
        raise BadRun(f"nothing starts at or after {filters.date_from} and before {filters.date_to}: swap the dates")
    if filters.min_trace_count is not None and filters.min_trace_count < 1:
        raise BadRun(f"min_trace_count is {filters.min_trace_count}, expected 1 or more")


def trace_matches(trace: TraceFacts, filters: Filters) -> bool:
    """Whether the filters that look at one trace let it through."""
    return (
        (not filters.trace_ids or trace.trace_id in filters.trace_ids)
        and (not filters.session_ids or trace.session_id in filters.session_ids)
        and (filters.date_from is None or trace.started_at >= filters.date_from)
        and (filters.date_to is None or trace.started_at < filters.date_to)
        and (filters.status is None or trace.status is filters.status)
        and (filters.session_id is None or trace.session_id == filters.session_id)
        and (filters.user_id is None or trace.user_id == filters.user_id)
        and (not filters.tags or not set(filters.tags).isdisjoint(trace.tags))
        and (filters.name is None or filters.name.casefold() in trace.name.casefold())
    )


def session_matches(traces: Sequence[TraceFacts], filters: Filters) -> bool:
    """Whether a session's traces pick it: those that match one by one are counted, and looked at for errors."""
    matching = [trace for trace in traces if trace_matches(trace, filters)]
    if len(matching) < max(1, filters.min_trace_count or 1):
        return False
    has_error = any(trace.status is TraceStatus.ERROR for trace in matching)
    return filters.has_error is None or filters.has_error == has_error


def pick_traces(traces: Iterable[TraceFacts], project: str, filters: Filters) -> tuple[TraceFacts, ...]:
    """Return the traces of a project that match, in the order in which they started."""
    matching = [trace for trace in traces if trace.project == project and trace_matches(trace, filters)]
    return tuple(sorted(matching, key=_by_start))


def pick_sessions(traces: Iterable[TraceFacts], project: str, filters: Filters) -> tuple[str, ...]:
    """Return the sessions of a project that match, in the order in which they started; a project is the latest trace's."""
    sessions: dict[str, list[TraceFacts]] = {}
    for trace in sorted(traces, key=_by_start):
        sessions.setdefault(trace.session_id, []).append(trace)
    return tuple(
        session_id
        for session_id, held in sessions.items()
        if held[-1].project == project and session_matches(held, filters)
    )


def check_sampling(rate: float) -> None:
    """See that a rate is one.

    Raises:
        BadRun: it is outside [0, 1], or not a number.
    """
    if not 0.0 <= rate <= 1.0:
        raise BadRun(f"the sampling rate is {rate}, expected a number from 0 (nothing) to 1 (everything)")


def sample(ids: Sequence[str], rate: float, run_id: str) -> tuple[str, ...]:
    """Return max(1, floor(N * rate)) of N distinct *ids* in their order, none where *rate* is 0.

    Chance comes from the run's id alone: the same run takes the same ids again, in whatever order they were found.
    """
    if rate == 0.0 or not ids:
        return ()
    count = max(1, math.floor(len(ids) * rate))
    taken = set(sorted(ids, key=lambda name: digest(run_id, name))[:count])
    return tuple(name for name in ids if name in taken)


def _by_start(trace: TraceFacts) -> tuple[int, str]:
    return trace.started_at, trace.trace_id
