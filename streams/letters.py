"""Dead letters: what stands in one, which ones are meant, and how they go back to where they came from."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from aiokafka import ConsumerRecord

from streams import admin, reading
from streams.engine import Connection, Out, Publisher, abilities
from streams.settings import Settings
from streams.topics import DEAD_LETTERS, EVAL_SCORES, TRACE_INGESTED

PREFIX: Final = "dlq-"
REDRIVEN: Final = "dlq-redriven"
"""Header of a record without value that marks a dead letter as redriven: where the letter stands."""
INPUTS: Final = (TRACE_INGESTED, EVAL_SCORES)
BATCH: Final = 500


@dataclass(frozen=True)
class Letter:
    """One dead letter: where it stands now, where it stood, why it is here, and its original bytes."""

    partition: int
    offset: int
    time: int
    topic: str
    topic_partition: int
    topic_offset: int
    error: str
    message: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    """Those it came with."""
    redriven: int | None = None
    """When it was last published again, in milliseconds; none when it never was."""

    @property
    def place(self) -> str:
        """Name it among the dead letters, as `PARTITION:OFFSET`."""
        return f"{self.partition}:{self.offset}"

    @property
    def source(self) -> tuple[str, int, int]:
        """Where it stood: the same letter may be here twice after a crash."""
        return self.topic, self.topic_partition, self.topic_offset


@dataclass(frozen=True)
class Wanted:
    """Which letters are meant; what is not said is not asked for."""

    topic: str | None = None
    error: str | None = None
    containing: str | None = None
    places: frozenset[str] = frozenset()
    since_ms: int | None = None

    def __call__(self, letter: Letter) -> bool:
        text = self.containing
        return (
            self.topic in (None, letter.topic)
            and self.error in (None, letter.error)
            and (not self.places or letter.place in self.places)
            and (self.since_ms is None or letter.time >= self.since_ms)
            and (text is None or text in letter.message or text.encode() in (letter.value or b""))
        )


def letter_of(record: ConsumerRecord) -> Letter:
    """Return what a record of the dead letters topic says; what another program put there has no origin."""
    said = {
        name: value.decode("utf-8", "replace") for name, value in record.headers if value and name.startswith(PREFIX)
    }
    return Letter(
        partition=record.partition,
        offset=record.offset,
        time=record.timestamp,
        topic=said.get("dlq-topic", ""),
        topic_partition=_number(said.get("dlq-partition")),
        topic_offset=_number(said.get("dlq-offset")),
        error=said.get("dlq-error", ""),
        message=said.get("dlq-message", ""),
        key=record.key,
        value=record.value,
        headers=tuple((name, value) for name, value in record.headers if not name.startswith(PREFIX)),
    )


async def find(settings: Settings, wanted: Wanted) -> list[Letter]:
    """Read the dead letters that are there now, each once, in the order of their times."""
    (place,) = await reading.locate(settings, DEAD_LETTERS)
    found: dict[object, Letter] = {}
    redriven: dict[object, int] = {}
    async with aclosing(reading.pages(place)) as pages:
        async for page in pages:
            for record in page.records:
                letter = letter_of(record)
                # What another program put there has no source, and is itself alone.
                same = letter.source if letter.topic else letter.place
                if any(name == REDRIVEN for name, _ in record.headers):
                    redriven[same] = record.timestamp
                elif wanted(letter):
                    found.setdefault(same, letter)
    return [replace(letter, redriven=redriven.get(same)) for same, letter in found.items()]


async def redrive(settings: Settings, reach: Connection, letters: Sequence[Letter]) -> tuple[int, list[Letter]]:
    """Publish input records again as they came; returns how many, and those that only a stage could have written.

    A record goes back to its own topic and partition. One that was applied after all changes nothing when it comes
    again: a score is superseded, a trace is an update. Once it has its ack, the letter is marked as redriven.
    """
    inputs = {settings.topic_names.get(role, role): role for role in INPUTS}
    found = await admin.find(reach, settings)
    counts = {name: found[role].partitions or 0 for name, role in inputs.items()}
    going: list[Letter] = []
    left: list[Letter] = []
    for letter in letters:
        (going if letter.topic_partition < counts.get(letter.topic, 0) else left).append(letter)
    publisher = Publisher(reach, idempotent=(await abilities(reach)).fences, max_record=admin.MAX_DEAD_LETTER_BYTES)
    try:
        for start in range(0, len(going), BATCH):
            batch = going[start : start + BATCH]
            await publisher.publish([_out(letter) for letter in batch])
            await publisher.publish([_mark(letter, found[DEAD_LETTERS].topic.name) for letter in batch])
    finally:
        await publisher.stop()
    return len(going), left


def _out(letter: Letter) -> Out:
    headers = (*letter.headers, ("redriven-from", letter.place.encode()))
    return Out(letter.topic, letter.topic_partition, letter.key, letter.value, headers)


def _mark(letter: Letter, dead_letters: str) -> Out:
    topic, partition, offset = letter.source
    said = {"dlq-topic": topic, "dlq-partition": partition, "dlq-offset": offset, REDRIVEN: letter.place}
    headers = tuple((name, str(value).encode()) for name, value in said.items())
    return Out(dead_letters, letter.partition, letter.key, None, headers)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else -1
