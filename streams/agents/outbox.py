"""Where each kind of output goes: its topic, key, partition and format."""

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import ConsumerRecord

from streams.admin import MAX_DEAD_LETTER_BYTES
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
from streams.engine import Out, partition_for
from streams.topics import (
    DEAD_LETTERS,
    EVAL_CASES,
    EVAL_REQUESTS,
    JOURNAL,
    NEEDS_HUMAN,
    NOTICE_CANDIDATES,
    NOTICES,
    TURN_REPORTS,
    TURN_SETTLED,
    Topic,
)
from streams.wire import Wire

Output = Report | Candidate | EvalRequest | TurnSettled | JournalEntry | Notice | NeedsHuman | EvalCase

ROLES: Mapping[type[Any], str] = {
    Report: TURN_REPORTS,
    Candidate: NOTICE_CANDIDATES,
    EvalRequest: EVAL_REQUESTS,
    TurnSettled: TURN_SETTLED,
    JournalEntry: JOURNAL,
    Notice: NOTICES,
    NeedsHuman: NEEDS_HUMAN,
    EvalCase: EVAL_CASES,
}
ROOM_FOR_HEADERS = 100_000
INTERNAL = frozenset({NOTICE_CANDIDATES, EVAL_REQUESTS})
"""Topics that only our own stages read: Avro always, whatever the output format."""


class Outbox:
    """Makes records of outputs; `counts` are the partition counts that the state was stored under."""

    def __init__(self, wire: Wire, topics: Mapping[str, Topic], counts: Mapping[str, int]) -> None:
        self._wire = wire
        self._topics = topics
        self._counts = counts

    def record(self, output: Output) -> Out:
        role = ROLES[type(output)]
        value = self._wire.write_internal(output) if role in INTERNAL else self._wire.write(output)
        return self.to(role, _key(output), value)

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
        headers = [*record.headers, *((name, str(value).encode("utf-8", "replace")) for name, value in said.items())]
        value = record.value
        if value is not None and len(value) > MAX_DEAD_LETTER_BYTES - ROOM_FOR_HEADERS:
            value = value[: MAX_DEAD_LETTER_BYTES - ROOM_FOR_HEADERS]
            headers.append(("dlq-cut-from-bytes", str(len(record.value)).encode()))
        return self.to(DEAD_LETTERS, record.key, value, headers=headers)


def _key(output: Output) -> bytes:
    match output:
        case Candidate():
            key = output.notice.project
        case NeedsHuman():
            key = output.project
        case EvalCase():
            key = output.case_id
        case JournalEntry():
            key = output.session_id or output.project or ""
        case _:
            key = output.session_id
    return key.encode("utf-8", "surrogatepass")
