"""The journal entry of a gap: acknowledged before reading goes on, and the same however often it is written."""

import asyncio

import pytest
from aiokafka import TopicPartition

from streams.agents.gaps import GapJournal
from streams.agents.outbox import Outbox
from streams.core.model import JournalEntry, JournalKind
from streams.engine import Appended, AppendFailed, Gap, GapCause, Out
from streams.metrics import Metrics
from streams.settings import load
from streams.topics import BY_ROLE, named
from streams.wire import Wire

GAP = Gap(TopicPartition("eval-scores", 3), 10, 50, GapCause.RETENTION)


class Journal:
    """A gap journal whose publisher is a double."""

    def __init__(self) -> None:
        self.wire, self.metrics = Wire.of(load(environ={}).settings), Metrics()
        self.sent: list[Out] = []
        self.fails = False
        self.journal = GapJournal(self, Outbox(self.wire, named({}), dict.fromkeys(BY_ROLE, 1)), self.metrics)  # type: ignore[arg-type]

    async def publish(self, outs: list[Out]) -> list[Appended]:
        if self.fails:
            raise AppendFailed("told to fail")
        self.sent += outs
        return []

    def record(self, gap: Gap) -> None:
        asyncio.run(self.journal.record(gap))

    @property
    def entries(self) -> list[JournalEntry]:
        return [self.wire.read(JournalEntry, out.value or b"") for out in self.sent]

    @property
    def counted(self) -> float | None:
        name, labels = "tgate_journal_entries_total", {"kind": JournalKind.GAP}
        return self.metrics.registry.get_sample_value(name, labels)


def test_the_same_gap_again_is_the_same_entry() -> None:
    it = Journal()
    it.record(GAP)
    it.record(GAP)
    it.record(Gap(GAP.tp, 10, 51, GAP.cause))
    first, again, other = it.entries
    assert first.journal_id == again.journal_id != other.journal_id
    assert (first.kind, first.reason) == (JournalKind.GAP, "retention")
    assert first.detail == "eval-scores-3 offsets 10 to 49: the wanted records have been deleted"
    assert it.counted == 3


def test_no_ack_is_an_error_so_that_reading_waits() -> None:
    it = Journal()
    it.fails = True
    with pytest.raises(AppendFailed):
        it.record(GAP)
    assert it.counted == 0
