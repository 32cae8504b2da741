"""The requests of one partition as they are stored: what is asked for, what is answered, what it has cost."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from streams import tables
from streams.core.bits import count, has_bit
from streams.core.eval_requests import KEPT_MS, Answer, Target, accepted, answered, spent, targets
from streams.core.eval_states import AnsweredRequest, RequestState, Spending, StagePosition
from streams.core.model import EvalRequest, ScoreTarget
from streams.engine import PartitionState
from streams.evaluators.metrics import METRICS
from streams.wire import decode_state, encode_state

Key = tuple[str, str, int]
"""Run, session and part: names a request, whatever its attempt."""

SESSION_METRICS: Final = frozenset(metric.name for metric in METRICS.values() if metric.target is ScoreTarget.SESSION)
MAX_FORGOTTEN: Final = 1_000


def key_of(request: EvalRequest) -> Key:
    """Return what names a request."""
    return request.run_id, request.session_id, request.part


class RequestBook:
    """What the evaluate stage knows of one partition. It changes at once; what has changed is stored by its owner."""

    def __init__(self, state: PartitionState, spending_ttl_ms: int) -> None:
        self._state = state
        self._spending_ttl_ms = spending_ttl_ms
        stored = state.get(tables.position_key(state.partition))
        self.place = StagePosition() if stored is None else decode_state(StagePosition, stored)
        self.open: dict[Key, RequestState] = {}
        for _, value in state.items(tables.REQUEST_PREFIX):
            request = decode_state(RequestState, value)
            self.open[key_of(request.request)] = request
        self._answered = _by_time(
            (key, decode_state(AnsweredRequest, value).answered_at)
            for key, value in state.items(tables.ANSWERED_PREFIX)
        )
        self._closed: dict[bytes, AnsweredRequest] = {}
        """What was closed last: the store may not have it yet."""
        self._spending = _by_time(
            (key, decode_state(Spending, value).changed_at) for key, value in state.items(tables.SPENDING_PREFIX)
        )

    def accept(
        self, requests: Iterable[EvalRequest], place: StagePosition, now: int
    ) -> tuple[set[Key], tables.Changes]:
        """Take requests in; returns the names of those that ask for something new, and what to store of all of it.

        now: of this worker's clock, milliseconds since 1970, UTC.
        """
        fresh: set[Key] = set()
        for request in requests:
            key = key_of(request)
            state = accepted(self.open.get(key) or self._known(key), request, now)
            if state is not None:
                self.open[key] = state
                fresh.add(key)
        self.place = place
        changes: tables.Changes = {tables.request_key(*key): encode_state(self.open[key]) for key in sorted(fresh)}
        changes[tables.position_key(self._state.partition)] = encode_state(place)
        for held, ttl_ms in ((self._answered, KEPT_MS), (self._spending, self._spending_ttl_ms)):
            changes.update(dict.fromkeys(_forgotten(held, now - ttl_ms)))
        return fresh, changes

    def missing(self, key: Key) -> tuple[Target, ...]:
        """Return what of an open request is not answered."""
        state = self.open[key]
        return tuple(
            target for target in targets(state.request, SESSION_METRICS) if not has_bit(state.answered, target.number)
        )

    def is_answered(self, key: Key) -> bool:
        """Whether every score of an open request is acknowledged."""
        state = self.open[key]
        return count(state.answered) >= len(targets(state.request, SESSION_METRICS))

    def note(self, key: Key, answers: Collection[Answer]) -> None:
        """Take in answers whose scores are acknowledged."""
        self.open[key] = answered(self.open[key], answers)

    def changes(self, keys: Collection[Key], costs: Mapping[str, Collection[Answer]], now: int) -> tables.Changes:
        """Return what to store of requests that got answers; those that are answered are closed.

        costs: by session, the answers that count for what it has cost.
        """
        written: tables.Changes = {}
        closed: dict[bytes, AnsweredRequest] = {}
        for session_id, answers in costs.items():
            key = tables.spending_key(session_id)
            self._spending.pop(key, None)
            self._spending[key] = now
            written[key] = encode_state(spent(self.spending(session_id), answers, now))
        for name in keys:
            if not self.is_answered(name):
                written[tables.request_key(*name)] = encode_state(self.open[name])
                continue
            state = self.open.pop(name)
            before = self._known(name)
            metrics = (*before.metrics, *state.request.metrics) if before else state.request.metrics
            key = tables.request_key(*name, answered=True)
            self._answered.pop(key, None)
            self._answered[key] = now
            closed[key] = AnsweredRequest(metrics, now)
            written[key] = encode_state(closed[key])
            written[tables.request_key(*name)] = None
        self._closed = closed
        return written

    def spending(self, session_id: str) -> Spending | None:
        """Return what a session's scores have cost."""
        stored = self._state.get(tables.spending_key(session_id))
        return None if stored is None else decode_state(Spending, stored)

    def _known(self, key: Key) -> AnsweredRequest | None:
        name = tables.request_key(*key, answered=True)
        if name not in self._answered:
            return None
        if (closed := self._closed.get(name)) is not None:
            return closed
        stored = self._state.get(name)
        return None if stored is None else decode_state(AnsweredRequest, stored)


def _by_time(found: Iterable[tuple[bytes, int]]) -> dict[bytes, int]:
    return dict(sorted(found, key=lambda item: item[1]))


def _forgotten(held: dict[bytes, int], horizon: int) -> list[bytes]:
    """Drop what is older than *horizon*, not too much at once, and return its keys."""
    found: list[bytes] = []
    for key, time in held.items():
        if time >= horizon or len(found) == MAX_FORGOTTEN:
            break
        found.append(key)
    for key in found:
        del held[key]
    return found
