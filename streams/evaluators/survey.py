"""What was ingested, as far as filters look at it: read from the traces topic, up to offsets that stay what they are."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from aiokafka import TopicPartition

from streams import reading
from streams.core.run_plan import FailedScore
from streams.core.run_targets import TraceFacts, facts, merged
from streams.engine import Offsets, abilities
from streams.errors import InvalidRecord
from streams.reading import Place
from streams.wire import Wire
from streams.wire.inputs import Datum

CLOCKS_DIFFER_MS: Final = 60_000


async def ends_of(place: Place, offsets: Offsets | None = None) -> tuple[int, ...]:
    """Return the offset after the last record of each partition.

    offsets: to ask with; without, a connection is made for this question.

    Raises:
        KafkaError: the broker does not answer.
    """
    tps = [TopicPartition(place.topic, number) for number in place.partitions]
    asking = offsets or Offsets(place.connection, lists_ends=(await abilities(place.connection)).fences)
    try:
        found = await asking.end_offsets(tps)
    finally:
        if offsets is None:
            await asking.stop()
    return tuple(found[tp] for tp in tps)


async def traces_before(place: Place, wire: Wire, ends: Sequence[int]) -> tuple[TraceFacts, ...]:
    """Return every trace that was ingested before these offsets, put together from its updates.

    Raises:
        BrokerUnavailable: the broker fell silent.
    """
    known: dict[str, TraceFacts] = {}
    async with aclosing(reading.pages(place)) as read:
        async for page in read:
            # By offset: what is published later updates what was published earlier, whatever the clocks said.
            for record in sorted(page.records, key=lambda record: (record.partition, record.offset)):
                if record.partition < len(ends) and record.offset >= ends[record.partition]:
                    continue
                if (trace := _facts(wire, record.value)) is not None:
                    known[trace.trace_id] = merged(known.get(trace.trace_id), trace)
    return tuple(known.values())


async def was_ingested(place: Place, wire: Wire, project: str, since: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether anything of a project was ingested between two places; where they cannot be compared, it was.

    Raises:
        BrokerUnavailable: the broker fell silent.
    """
    if tuple(since) == tuple(ends):
        return False
    if len(since) != len(place.partitions):
        return True
    async with aclosing(reading.pages(place, start=dict(enumerate(since)))) as read:
        async for page in read:
            for record in page.records:
                trace = _facts(wire, record.value)
                if trace is not None and trace.project == project:
                    return True
    return False


async def scores_of(place: Place, wire: Wire, run_id: str, created_at: int) -> tuple[Datum, ...]:
    """Return the scores of a run that eval-scores still holds, fields as the JSON format has them; a repeat counts once.

    Raises:
        BrokerUnavailable: the broker fell silent.
    """
    found: dict[str, Datum] = {}
    async with aclosing(reading.pages(place, since_ms=max(0, created_at - CLOCKS_DIFFER_MS))) as read:
        async for page in read:
            for record in page.records:
                try:
                    score = wire.read_fields("Score", record.value)
                except InvalidRecord:
                    continue  # whoever publishes may publish anything; ingest has said so
                if score["eval_run_id"] == run_id:
                    score["session_id"] = score["session_id"] or (record.key or b"").decode("utf-8", "replace")
                    found[score["score_id"]] = score
    return tuple(found.values())


def failed_among(scores: Sequence[Datum]) -> tuple[FailedScore, ...]:
    """Return the scores that have no value."""
    return tuple(
        FailedScore(score["session_id"], score["trace_id"], score["name"])
        for score in scores
        if score["status"] == "FAILED"
    )


def _facts(wire: Wire, value: bytes | None) -> TraceFacts | None:
    try:
        return facts(wire.read_fields("Trace", value))
    except InvalidRecord:
        return None
