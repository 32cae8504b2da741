"""The folds of both logs at once: the session log's partitions, then the breaker over all their candidates."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from streams.agents.outbox import Output
from streams.core.breaker import BreakerState
from streams.core.candidates import CandidateFold, CandidatePartitionState, CandidateRecord
from streams.core.log import LogFold, LogRecord, PartitionState
from streams.core.model import BreakerOutput, Candidate, Score, SessionOutput, StepFailed
from streams.core.rules import Rules
from streams.core.state import SessionState
from streams.replay.choice import EVERYTHING, Choice
from streams.topics import SESSION_LOG

FLUSH_EVERY: Final = 10_000

Change = Callable[[Rules], Rules]
"""What a replay makes of each rules record."""


def recorded(rules: Rules) -> Rules:
    """Take the rules as they were recorded."""
    return rules


def always(rules: Rules) -> Change:
    """Take these rules instead of any recorded ones."""
    return lambda _: rules


def changed(values: dict[str, Any]) -> Change:
    """Take the recorded rules with some settings changed."""
    return lambda rules: replace(rules, **values)


def differences(before: Rules, after: Rules) -> dict[str, tuple[Any, Any]]:
    """Return each setting that differs with both its values."""
    pairs = {item.name: (getattr(before, item.name), getattr(after, item.name)) for item in fields(Rules)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class _Raised:
    """A candidate, and whether what becomes of it is shown."""

    candidate: Candidate
    shown: bool

    @property
    def place(self) -> tuple[int, int, int, str, int]:
        """Order candidates of several log partitions as one log: by time, then by place."""
        notice, position = self.candidate.notice, self.candidate.position
        return notice.time, position.partition, position.offset, notice.session_id, self.candidate.index


class Replay:
    """Folds records of the session log, partition by partition; `settle` then folds what they raised."""

    def __init__(
        self,
        change: Change = recorded,
        choice: Choice = EVERYTHING,
        topic: str = SESSION_LOG,
        watch: Callable[[str, Score], None] | None = None,
    ) -> None:
        """*watch* gets every score of what is asked for, also those that come too late for their turn."""
        self._change = change
        self._watch = watch
        self._choice = choice
        self._topic = topic
        self._states: dict[str, SessionState] = {}
        self._folds: dict[int, LogFold] = {}
        self._early: dict[int, list[LogRecord]] = {}
        self._raised: list[_Raised] = []
        self.records = 0
        self.recorded_rules: list[Rules] = []
        """The distinct rules met, as they were recorded."""
        self.rules: list[Rules] = []
        """The distinct rules folded under."""
        self.failed: list[StepFailed] = []

    @property
    def states(self) -> dict[str, SessionState]:
        """The sessions as they stand now, those expired left out."""
        self._flush()
        return self._states

    def apply(self, partition: int, record: LogRecord) -> list[Output]:
        """Fold one record; returns the outputs that are asked for.

        Records that come before any rules, as after a cut of the log, wait for the first ones and follow them.
        """
        if self._choice.is_past(partition, record.offset, record.time):
            return []
        fold = self._folds.get(partition)
        if fold is None:
            fold = self._folds[partition] = LogFold(partition, PartitionState(), self._states.get, self._topic)
        if isinstance(record.body, Rules):
            record = record._replace(body=self._rules(record.body))
        elif self._is_skipped(partition, record):
            return []
        if fold.rules is not None:
            return self._fold(fold, record)
        early = self._early.setdefault(partition, [])
        if not isinstance(record.body, Rules):
            early.append(record)
            return []
        first = early[0] if early else record
        started = self._fold(fold, LogRecord(first.offset - 1, first.time, record.body)) if early else []
        for held in early:
            started += self._fold(fold, held)
        del self._early[partition]
        return started + self._fold(fold, record)

    def begin(self, rules: Rules) -> None:
        """Put rules in force for a log that holds none: partition 0, before its first record."""
        self.apply(0, LogRecord(0, 0, rules))

    @property
    def left_out(self) -> int:
        """Records without any rules to fold them under."""
        return sum(map(len, self._early.values()))

    def next_due(self, partition: int) -> int | None:
        """Return when the next wait of the partition's sessions runs out, in milliseconds."""
        fold = self._folds.get(partition)
        return fold.next_due if fold else None

    def settle(self) -> Iterator[Output]:
        """Fold all candidates raised so far, in the order of their times; yields the outputs that are asked for."""
        nothing: dict[str, BreakerState] = {}
        fold = CandidateFold(CandidatePartitionState(), nothing.get)
        for offset, raised in enumerate(sorted(self._raised, key=lambda item: item.place)):
            outputs = fold.apply(CandidateRecord(offset, raised.candidate))
            if raised.shown:
                yield from self._shown(outputs)

    def _rules(self, found: Rules) -> Rules:
        rules = self._change(found)
        if found not in self.recorded_rules:
            self.recorded_rules.append(found)
        if rules not in self.rules:
            self.rules.append(rules)
        return rules

    def _is_skipped(self, partition: int, record: LogRecord) -> bool:
        return self._choice.cold and not self._choice.covers(partition, record.offset, record.time)

    def _fold(self, fold: LogFold, record: LogRecord) -> list[Output]:
        self.records += 1
        if self.records % FLUSH_EVERY == 0:
            self._flush()
        outputs = [output for _, found in fold.apply(record) for output in found]
        shown = self._choice.covers(fold.partition, record.offset, record.time)
        if shown and self._watch is not None and isinstance(record.body, Score) and record.session_id is not None:
            self._watch(record.session_id, record.body)
        for output in outputs:
            if isinstance(output, Candidate):
                self._raised.append(_Raised(output, shown))
        return list(self._shown(outputs)) if shown else []

    def _shown(self, outputs: Iterable[SessionOutput | BreakerOutput]) -> Iterator[Output]:
        for output in outputs:
            if isinstance(output, StepFailed):
                self.failed.append(output)
            elif self._choice.shows(output):
                yield output

    def _flush(self) -> None:
        for fold in self._folds.values():
            touched, expired = fold.flush()
            self._states.update(touched)
            for session_id in expired:
                self._states.pop(session_id, None)


class CandidateReplay:
    """Folds records of the candidates log, partition by partition, as the breaker stage did."""

    def __init__(self, choice: Choice = EVERYTHING) -> None:
        self._choice = choice
        self._folds: dict[int, CandidateFold] = {}
        self.states: dict[str, BreakerState] = {}
        self.failed: list[StepFailed] = []
        self.records = 0

    def apply(self, partition: int, record: CandidateRecord) -> list[Output]:
        """Fold one record; returns the outputs that are asked for."""
        fold = self._folds.get(partition)
        if fold is None:
            fold = self._folds[partition] = CandidateFold(CandidatePartitionState(), self.states.get)
        body = record.body
        time = body.notice.time if isinstance(body, Candidate) else fold.now
        if self._choice.is_past(partition, record.offset, time):
            return []
        self.records += 1
        outputs = fold.apply(record)
        self.states.update(fold.flush())
        self.failed += [item for item in outputs if isinstance(item, StepFailed)]
        if not self._choice.covers(partition, record.offset, time):
            return []
        return [item for item in outputs if not isinstance(item, StepFailed) and self._choice.shows(item)]
