"""Traces and scores without a log: put in the order of their times, with the ticks that time would have brought."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streams.agents.outbox import Output
from streams.core.log import LogRecord, Source
from streams.core.model import Score, Trace
from streams.core.rules import Rules
from streams.core.session import Tick
from streams.replay.folding import Replay


class Input(NamedTuple):
    """A trace or score with the time that counts as its arrival, in milliseconds."""

    time: int
    session_id: str
    body: Trace | Score
    source: Source | None = None


def in_order(inputs: Iterable[Input]) -> list[Input]:
    """Return inputs in the order of their times; those of one time as they came."""
    return sorted(inputs, key=lambda item: item.time)


class Timeline:
    """Feeds a replay from inputs in the order of their times.

    Whenever a wait has run out before the next input there is a tick at that moment, and after the last one until
    nothing waits any more: no session stays undecided, and none waits longer than it would have.
    """

    def __init__(self, replay: Replay, rules: Rules) -> None:
        self._replay = replay
        self._offset = 1
        replay.begin(rules)

    def feed(self, item: Input) -> list[Output]:
        """Fold an input after all waits that ran out before it; returns the outputs."""
        outputs = list(self._wait_until(item.time))
        return outputs + self._append(item.time, item.body, item.session_id, item.source)

    def end(self) -> list[Output]:
        """Let every wait run out; returns the outputs."""
        return list(self._wait_until(None))

    def _wait_until(self, time: int | None) -> Iterator[Output]:
        while (due := self._replay.next_due(0)) is not None and (time is None or due < time):
            yield from self._append(due, Tick(due))

    def _append(
        self, time: int, body: Trace | Score | Tick, session_id: str | None = None, source: Source | None = None
    ) -> list[Output]:
        record = LogRecord(self._offset, time, body, session_id, source)
        self._offset += 1
        return self._replay.apply(0, record)
