"""Where each kind of output goes: its topic, key, partition and format."""

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import ConsumerRecord

from streams.admin import MAX_DEAD_LETTER_BYTES
from streams.core.eval_log import EvalEvent, EvalLogRecord, about
from streams.core.model import (
    Candidate,
    EvalCase,
    EvalRequest,
    JournalEntry,
    NeedsHuman,
    Notice,
    Report,
    TurnSettled,
)
from streams.core.monitors import Monitor, MonitorGone
from streams.core.runs import EvalRun
from streams.engine import Out, partition_for
from streams.engine.producing import size_in_request
from streams.topics import (
    DEAD_LETTERS,
    EVAL_CASES,
    EVAL_LOG,
    EVAL_REQUESTS,
    EVAL_RUNS,
    JOURNAL,
    MONITORS,
    NEEDS_HUMAN,
    NOTICE_CANDIDATES,
    NOTICES,
    TURN_REPORTS,
    TURN_SETTLED,
    Topic,
)
from streams.wire import Wire

Output = Report | Candidate | EvalRequest | TurnSettled | JournalEntry | Notice | NeedsHuman | EvalCase
"""What detection puts out."""
EvalOutput = EvalRun | Monitor | MonitorGone | EvalEvent | EvalRequest | JournalEntry
"""What the runs of evaluators put out."""

ROLES: Mapping[type[Any], str] = {
    Report: TURN_REPORTS,
    Candidate: NOTICE_CANDIDATES,
    EvalRequest: EVAL_REQUESTS,
    TurnSettled: TURN_SETTLED,
    JournalEntry: JOURNAL,
    Notice: NOTICES,
    NeedsHuman: NEEDS_HUMAN,
    EvalCase: EVAL_CASES,
    EvalRun: EVAL_RUNS,
    Monitor: MONITORS,
}
ROOM_FOR_MARKS = 1_000
"""Bytes for the headers that say what was cut."""
INTERNAL = frozenset({NOTICE_CANDIDATES, EVAL_REQUESTS})
"""Topics that only our own stages read: Avro always, whatever the output format."""


class Outbox:
    """Makes records of outputs; `counts` are the partition counts that the state was stored under."""

    def __init__(self, wire: Wire, topics: Mapping[str, Topic], counts: Mapping[str, int]) -> None:
        self._wire = wire
        self._topics = topics
        self._counts = counts

    def record(self, output: Output | EvalOutput) -> Out:
        role = ROLES.get(type(output))
        if role is None:
            return self._of_evaluators(output)
        value = self._wire.write_internal(output) if role in INTERNAL else self._wire.write(output)
        return self.to(role, _key(output), value)

    def _of_evaluators(self, output: Output | EvalOutput) -> Out:
        """Return the record of an event of the eval log, or the tombstone of a monitor."""
        if isinstance(output, MonitorGone):
            return self.to(MONITORS, _key(output), None)
        assert isinstance(output, EvalEvent)
        return self.to(EVAL_LOG, _key(output), self._wire.write_internal(EvalLogRecord(-1, 0, output)))

    def to(
        self,
        role: str,
        key: bytes | None,
        value: bytes | None,
        *,
        partition: int | None = None,
        headers: Iterable[tuple[str, bytes]] = (),
    ) -> Out:
        """Return a record for a topic; without a partition, the key's."""
        if partition is None:
            partition = partition_for(key or b"", self._counts[role])
        return Out(self._topics[role].name, partition, key, value, tuple(headers))

    def dead_letter(self, record: ConsumerRecord, error: Exception) -> Out:
        """Return the record as it came, with where it stood and why it could not be read in its headers."""
        said = {
            "dlq-topic": record.topic,
            "dlq-partition": record.partition,
            "dlq-offset": record.offset,
            "dlq-timestamp": record.timestamp,
            "dlq-error": type(error).__name__,
            "dlq-message": error,
        }
        ours = [(name, str(value).encode("utf-8", "replace")) for name, value in said.items()]
        key, value, theirs = record.key, record.value, list(record.headers)
        over = size_in_request(key, value, [*theirs, *ours]) - MAX_DEAD_LETTER_BYTES + ROOM_FOR_MARKS
        if over > 0:
            ours.append(("dlq-cut-from-bytes", str(len(value or b"")).encode()))
            over -= len(value or b"")
            value = (value or b"")[: max(0, -over)]
        if over > 0:
            # All that is left are headers and a key of many megabytes.
            ours.append(("dlq-left-out", b"key and headers"))
            key, theirs = None, []
        return self.to(DEAD_LETTERS, key, value, headers=[*theirs, *ours])


def _key(output: Output | EvalOutput) -> bytes:
    match output:
        case Report() | EvalRequest() | TurnSettled() | Notice():
            key = output.session_id
        case Candidate():
            key = output.notice.project
        case NeedsHuman():
            key = output.project
        case EvalCase():
            key = output.case_id
        case EvalRun():
            key = output.run_id
        case Monitor():
            key = output.monitor_id
        case JournalEntry():
            key = output.session_id or output.project or ""
        case _:
            key = about(output)
    return key.encode("utf-8", "surrogatepass")
