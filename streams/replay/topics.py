"""Topics as what a replay folds: the session log, the candidates log, or the input topics."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from aiokafka import ConsumerRecord

from streams import reading
from streams.core.candidates import CandidateRecord
from streams.core.log import LogRecord, Source
from streams.errors import InvalidRecord
from streams.replay.choice import Choice
from streams.replay.timeline import Input
from streams.settings import Settings
from streams.topics import EVAL_SCORES, NOTICE_CANDIDATES, SESSION_LOG, TRACE_INGESTED
from streams.wire import Wire

V = TypeVar("V")


@dataclass
class TopicReader:
    """Reads topics to their present ends, page by page."""

    settings: Settings
    choice: Choice
    refused: list[tuple[str, int, str]] = field(default_factory=list)
    """Topic partition, offset and reason of each record that cannot be read: the stages left it out as well."""

    def __post_init__(self) -> None:
        self._wire = Wire.of(self.settings)

    async def session_log(self) -> AsyncIterator[list[tuple[int, LogRecord]]]:
        """Yield pages of (partition, record), each partition in its order."""

        def read(record: ConsumerRecord) -> LogRecord:
            return self._wire.read_log_record(record.value, record.offset, record.timestamp)

        # From its start also when it is folded from later on: the rules in force may have been recorded long before.
        async for page in self._pages(SESSION_LOG, seek=False):
            yield [
                (record.partition, value)
                for record in page
                if self._counts(record)
                for value in self._try(record, read)
            ]

    async def candidates(self) -> AsyncIterator[list[tuple[int, CandidateRecord]]]:
        """Yield pages of (partition, record), each partition in its order."""

        def read(record: ConsumerRecord) -> CandidateRecord:
            return CandidateRecord(record.offset, self._wire.read_candidate(record.value))

        async for page in self._pages(NOTICE_CANDIDATES):
            yield [(record.partition, value) for record in page for value in self._try(record, read)]

    async def inputs(self) -> AsyncIterator[list[Input]]:
        """Yield pages of traces, then of scores; their arrival is their record's time."""

        def read_trace(record: ConsumerRecord) -> Input:
            found = self._wire.read_trace(record.value, record.key, record.timestamp)
            return Input(record.timestamp, found.session_id, found.trace, _source(record))

        def read_score(record: ConsumerRecord) -> Input:
            found = self._wire.read_score(record.value, record.key, record.timestamp)
            return Input(record.timestamp, found.session_id, found.score, _source(record))

        async for page in self._pages(TRACE_INGESTED):
            yield [value for record in page for value in self._try(record, read_trace)]
        async for page in self._pages(EVAL_SCORES):
            yield [value for record in page for value in self._try(record, read_score)]

    def _counts(self, record: ConsumerRecord) -> bool:
        """Whether a record must be read; rules have no key."""
        choice = self.choice
        return record.key is None or not choice.cold or choice.covers(record.partition, record.offset, record.timestamp)

    async def _pages(self, role: str, *, seek: bool = True) -> AsyncIterator[tuple[ConsumerRecord, ...]]:
        (place,) = await reading.locate(self.settings, role)
        since = self.choice.since if self.choice.cold and seek else None
        async with aclosing(reading.pages(place, since_ms=since)) as pages:
            async for page in pages:
                # A page is in the order of times; a fold goes by offsets, and where the appender's clock gives the
                # times, the two differ.
                yield tuple(sorted(page.records, key=lambda record: (record.partition, record.offset)))

    def _try(self, record: ConsumerRecord, read: Callable[[ConsumerRecord], V]) -> Iterator[V]:
        try:
            yield read(record)
        except InvalidRecord as error:
            self.refused.append((f"{record.topic}-{record.partition}", record.offset, str(error)))


def _source(record: ConsumerRecord) -> Source:
    return Source(record.topic, "", record.partition, record.offset)
