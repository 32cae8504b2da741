"""Finds what a score is made from in the other stages' tables, and waits where it has not been read yet."""

import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from aiokafka.errors import KafkaError

from streams.evaluators.catalog import CatalogStage
from streams.evaluators.evaluation import Subject
from streams.evaluators.heard_signals import HeardSignals, SignalStage

ASSIGNED_WITHIN_S: Final = 600.0
"""How long a worker waits for the other stages' partition of the same number to be up here and read to its end.

The group gives a worker the same partition numbers of all topics with the same count; the partitions are brought up
one by one, and a large table takes its time.
"""

EndOf = Callable[[int], Awaitable[int]]
"""Where a partition of a topic ends now; raises KafkaError where the broker does not say."""


class Absent(Exception):
    """What a score is made from did not come in time; the text says what."""


class _Wait:
    """Over when a stage has read to where its topic ended, and some more time has passed."""

    def __init__(self, partition: int, topic: str, end_of: EndOf, wait_s: float) -> None:
        self._partition = partition
        self._topic = topic
        self._end_of = end_of
        self._wait_s = wait_s
        self._began = time.monotonic()
        self._end: int | None = None
        self._until = 0.0

    async def look(self, position: int | None) -> bool:
        """Return whether waiting has no use any more; *position*: of the stage, none while it is not up.

        Raises:
            Absent: the stage does not come up, or does not get on.
        """
        now = time.monotonic()
        if now - self._began > ASSIGNED_WITHIN_S:
            raise Absent(f"this worker has not read partition {self._partition} of {self._topic} to its end")
        if position is None:
            return False
        if self._end is None:
            try:
                self._end = await self._end_of(self._partition)
            except (KafkaError, TimeoutError):
                return False
            self._until = now + self._wait_s
        return position >= self._end and now >= self._until


class Lookups:
    """What the evaluate stage asks the other two."""

    def __init__(
        self, catalogs: CatalogStage, signals: SignalStage, end_of_traces: EndOf, end_of_log: EndOf, wait_s: float
    ) -> None:
        self._catalogs = catalogs
        self._signals = signals
        self._end_of_traces = end_of_traces
        self._end_of_log = end_of_log
        self._wait_s = wait_s

    async def subject(self, partition: int, session_id: str, trace_id: str, statuses: Collection[str]) -> Subject:
        """Return a trace with the ones before it; one with another status than *statuses* is waited for as well.

        Raises:
            Absent: it is not there.
        """
        wait = _Wait(partition, "the traces topic", self._end_of_traces, self._wait_s)
        while True:
            catalog = self._catalogs.folds.get(partition)
            found = catalog.subject(session_id, trace_id) if catalog else None
            if found is not None and found.trace["status"] in statuses:
                return found
            if await wait.look(catalog.position if catalog else None):
                said = f"is {found.trace['status']}" if found else "is not among those that evaluators keep"
                raise Absent(f"the trace {said}, {self._wait_s:g} s (eval_trace_wait_s) after it was asked for")
            await self._catalogs.moves.wait()

    async def signals(self, partition: int, log_offset: int) -> HeardSignals:
        """Return the signals of a partition's sessions once the log record at *log_offset* has been heard; of -1: all.

        Raises:
            Absent: it was not heard in time.
        """
        wait = _Wait(partition, "the session log", self._end_of_log, self._wait_s)
        while True:
            heard = self._signals.folds.get(partition)
            if heard is not None and 0 <= log_offset < heard.position:
                return heard
            is_over = await wait.look(heard.position if heard else None)
            if is_over and heard is not None:
                if log_offset < 0:
                    return heard
                raise Absent(f"the session log ends before {log_offset}, where this was asked for")
            await self._signals.moves.wait()
