"""Proves after a run that every input record was taken once, and that topics and states equal the folds of the logs."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import ConsumerRecord

from streams import tables
from streams.agents.outbox import INTERNAL, ROLES
from streams.core.breaker import BreakerState
from streams.core.candidates import CandidateFold, CandidatePartitionState, CandidateRecord
from streams.core.log import LogFold, LogRecord, PartitionState
from streams.core.model import JournalKind, StepFailed
from streams.core.state import SessionState
from streams.topics import BREAKER_STATES, DEAD_LETTERS, JOURNAL, NOTICE_CANDIDATES, SESSION_LOG, SESSION_STATES
from streams.wire import Wire
from tests.chaos import topics
from tests.chaos.agents import Line, number_of
from tests.chaos.feed import Published
from tests.chaos.findings import Finding, compare, compare_values
from tests.pipeline.harness import Pipeline

APART = {JournalKind.GAP.value, JournalKind.HEALTH.value}
"""Journal entries that say something of the workers, not of the log."""
_GAP = re.compile(r"(?P<topic>.+)-(?P<partition>\d+) offsets (?P<start>\d+) to (?P<last>\d+):")


@dataclass
class Checked:
    """The result. excluded: input records that retention took, as the journal says, and nothing else."""

    findings: list[Finding] = field(default_factory=list)
    records: int = 0
    log_records: int = 0
    ignored_repeats: int = 0
    excluded: int = 0
    gaps: list[str] = field(default_factory=list)
    health: Mapping[str, int] = field(default_factory=dict)

    def total(self, what: str) -> int:
        return sum(getattr(finding, what) for finding in self.findings)


class Check:
    """Reads every topic once and compares."""

    def __init__(self, pipeline: Pipeline, published: Published) -> None:
        self._pipeline = pipeline
        self._published = published
        self._wire = Wire.of(pipeline.settings)
        self._log = pipeline.topics[SESSION_LOG].name
        self.result = Checked()

    def run(self) -> Checked:
        applied, outputs, places, states = self._fold_session_log()
        more, breaker_places, breakers = self._fold_candidates()
        journal = [json.loads(record.value) for record in self._pipeline.read(JOURNAL)]
        self.result.gaps = sorted({entry["detail"] for entry in journal if entry["kind"] == JournalKind.GAP})
        self.result.health = Counter(entry["reason"] for entry in journal if entry["kind"] == JournalKind.HEALTH)
        self._check_input(applied)
        self._check_outputs([*outputs, *more])
        self._check_table(SESSION_STATES, SessionState, PartitionState, states, places)
        self._check_table(BREAKER_STATES, BreakerState, CandidatePartitionState, breakers, breaker_places)
        return self.result

    def _fold_session_log(
        self,
    ) -> tuple[list[LogRecord], list[Any], dict[int, PartitionState], dict[str, SessionState]]:
        applied: list[LogRecord] = []
        outputs: list[Any] = []
        states: dict[str, SessionState] = {}
        folds: dict[int, LogFold] = {}
        for record in self._pipeline.read(SESSION_LOG):
            fold = folds.get(record.partition)
            if fold is None:
                fold = folds[record.partition] = LogFold(record.partition, PartitionState(), states.get, self._log)
            read = self._wire.read_log_record(record.value, record.offset, record.timestamp)
            stepped = fold.apply(read)
            outputs.extend(output for _, found in stepped for output in found)
            if read.source is not None:
                applied += [read] if stepped else []
                self.result.ignored_repeats += not stepped
            self.result.log_records += 1
        alive: dict[str, SessionState] = {}
        for fold in folds.values():
            touched, _ = fold.flush()
            states.update(touched)
            alive.update({name: states[name] for name in touched if fold.get(name) is not None})
        return applied, outputs, {part: fold.state for part, fold in folds.items()}, alive

    def _fold_candidates(self) -> tuple[list[Any], dict[int, CandidatePartitionState], dict[str, BreakerState]]:
        outputs: list[Any] = []
        states: dict[str, BreakerState] = {}
        folds: dict[int, CandidateFold] = {}
        for record in self._pipeline.read(NOTICE_CANDIDATES):
            fold = folds.get(record.partition)
            if fold is None:
                fold = folds[record.partition] = CandidateFold(CandidatePartitionState(), states.get)
            outputs.extend(fold.apply(CandidateRecord(record.offset, self._wire.read_candidate(record.value))))
        for fold in folds.values():
            states.update(fold.flush())
        return outputs, {part: fold.state for part, fold in folds.items()}, states

    def _check_input(self, applied: list[LogRecord]) -> None:
        """Hold the log and the dead letters against everything that stands, or stood, in the input topics."""
        lines = self._standing()
        self.result.records = len(lines)
        valid = {line.number: place for place, line in lines.items() if line.is_valid}
        counts = Counter(number_of(record.body) for record in applied)
        missing = valid.keys() - counts.keys()
        gone = {number for number in missing if self._in_a_gap(valid[number])}
        self.result.excluded = len(gone)
        finding = compare("input records in session-log", valid.keys() - gone, counts)
        finding.examples += [f"stood at {valid[number]}" for number in sorted(missing - gone)[:20]]
        twice = [number for number, count in counts.items() if count > 1]
        finding.spurious += len(twice)
        finding.examples += [f"applied {counts[number]} times: {valid.get(number)}" for number in twice[:5]]
        places = {number: (self._pipeline.topics[role].name, *rest) for number, (role, _, *rest) in valid.items()}
        elsewhere = [
            record for record in applied if places.get(number_of(record.body), _place(record)) != _place(record)
        ]
        finding.spurious += len(elsewhere)
        finding.examples += [f"{number_of(r.body)} stood elsewhere than at {r.source}" for r in elsewhere[:5]]
        self.result.findings.append(finding)
        self._check_dead_letters(lines)

    def _standing(self) -> dict[tuple[str, int, int, int], Line]:
        """Return every record with an ack, and those without one that stand in their topic nevertheless."""
        found = dict(self._published.acked)
        lines = {line.value: line for line in self._published.unknown.values()}
        for role in topics.INPUTS:
            generation = self._published.generations.get(role, 0)
            for record in self._pipeline.read(role):
                if (line := lines.get(record.value)) is not None:
                    found[role, generation, record.partition, record.offset] = line
        return found

    def _in_a_gap(self, place: tuple[str, int, int, int]) -> bool:
        role, _, partition, offset = place
        name = self._pipeline.topics[role].name
        gaps = [match for detail in self.result.gaps if (match := _GAP.match(detail))]
        return any(
            gap["topic"] == name
            and int(gap["partition"]) == partition
            and int(gap["start"]) <= offset <= int(gap["last"])
            for gap in gaps
        )

    def _check_dead_letters(self, lines: Mapping[tuple[str, int, int, int], Line]) -> None:
        names = {role: self._pipeline.topics[role].name for role in topics.INPUTS}
        expected = {
            (names[role], partition, offset, line.value)
            for (role, _, partition, offset), line in lines.items()
            if not line.is_valid
        }
        letters = [_place_of(record) for record in self._pipeline.read(DEAD_LETTERS)]
        found = [letter for letter in letters if letter[0] in names.values()]
        gone = {
            item
            for item in expected - set(found)
            if any(self._in_a_gap((role, 0, *item[1:3])) for role, name in names.items() if name == item[0])
        }
        self.result.excluded += len(gone)
        self.result.findings.append(compare("bad input records in dead-letters", expected - gone, found))

    def _check_outputs(self, outputs: list[Any]) -> None:
        expected: dict[str, set[bytes]] = defaultdict(set)
        # A step that raises is a bug of the rules, whatever the workers made of it.
        failed = [output for output in outputs if isinstance(output, StepFailed)]
        self.result.findings.append(compare("steps that raised", (), failed))
        for output in (output for output in outputs if not isinstance(output, StepFailed)):
            role = ROLES[type(output)]
            expected[role].add(self._wire.write_internal(output) if role in INTERNAL else self._wire.write(output))
        for role in ROLES.values():
            values = [record.value for record in self._pipeline.read(role)]
            if role == JOURNAL:
                values = [value for value in values if json.loads(value)["kind"] not in APART]
            if role == NOTICE_CANDIDATES:
                values = [value for value in values if value is not None]
            self.result.findings.append(compare(role, expected[role], values))

    def _check_table(
        self, role: str, state: type[Any], place: type[Any], states: Mapping[str, Any], places: Mapping[int, Any]
    ) -> None:
        """Compare the latest value of each key; what has expired counts as absent on both sides."""
        latest: dict[bytes, bytes | None] = {}
        homes: dict[bytes, int] = {}
        for record in self._pipeline.read(role):
            latest[record.key], homes[record.key] = record.value, record.partition
        stored = {key: value for key, value in latest.items() if value is not None}
        found = {key: tables.decode_state(state, value) for key, value in stored.items() if key.startswith(b"s/")}
        if state is SessionState:
            found = {key: held for key, held in found.items() if not _has_expired(held, places[homes[key]])}
        expected = {tables.state_key(name): held for name, held in states.items()}
        self.result.findings.append(compare_values(f"states in {role}", expected, found))
        positions = {key: tables.decode_state(place, value) for key, value in stored.items() if key.startswith(b"p/")}
        wanted = {tables.position_key(partition): held for partition, held in places.items()}
        self.result.findings.append(compare_values(f"positions in {role}", wanted, positions))


def _has_expired(state: SessionState, place: PartitionState) -> bool:
    lives = 0 if place.rules is None else place.rules.ms.session_ttl
    return state.last_activity < max(place.forgotten_before, place.now - lives)


def _place(record: LogRecord) -> tuple[str, int, int]:
    assert record.source is not None
    return record.source.topic, record.source.partition, record.source.offset


def _place_of(letter: ConsumerRecord) -> tuple[str, int, int, bytes]:
    headers = dict(letter.headers)
    return (
        headers["dlq-topic"].decode(),
        int(headers["dlq-partition"]),
        int(headers["dlq-offset"]),
        letter.value,
    )
