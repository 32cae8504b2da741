"""One run of a replay: records from where they are, through one or more replays side by side, to where outputs go."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final

from streams.agents.outbox import Output
from streams.core.rules import Rules
from streams.replay.folding import CandidateReplay, Replay
from streams.replay.timeline import Input, Timeline, in_order
from streams.replay.topics import TopicReader

Take = Callable[[int, Sequence[Output]], Awaitable[None]]
"""Gets the outputs of the n-th replay as they come."""
Tell = Callable[[int], None]
"""Is told now and then how many records have been read."""

BATCH: Final = 2_000


class Origin(StrEnum):
    """Where records come from."""

    SESSION_LOG = "session-log"
    CANDIDATES = "notice-candidates"
    INPUTS = "inputs"


async def replay_log(reader: TopicReader, replays: Sequence[Replay], take: Take, tell: Tell) -> None:
    """Replay the session log, then the breaker over what it raised."""
    read = 0
    async for page in reader.session_log():
        for number, replay in enumerate(replays):
            outputs: list[Output] = []
            for partition, record in page:
                outputs += replay.apply(partition, record)
            await take(number, outputs)
        read += len(page)
        tell(read)
    await _settle(replays, take)


async def replay_candidates(reader: TopicReader, replay: CandidateReplay, take: Take, tell: Tell) -> None:
    """Replay the candidates log: the breaker stage alone, exactly as it was."""
    read = 0
    async for page in reader.candidates():
        await take(0, [output for partition, record in page for output in replay.apply(partition, record)])
        read += len(page)
        tell(read)


async def replay_inputs(
    inputs: Iterable[Input], replays: Sequence[Replay], rules: Sequence[Rules], take: Take, tell: Tell
) -> None:
    """Replay traces and scores in the order of their times, each replay under its own rules."""
    timelines = [Timeline(replay, own) for replay, own in zip(replays, rules, strict=True)]
    held: list[list[Output]] = [[] for _ in replays]
    for read, item in enumerate(in_order(inputs), 1):
        for timeline, outputs in zip(timelines, held, strict=True):
            outputs.extend(timeline.feed(item))
        if read % BATCH == 0:
            await _hand_over(held, take)
            tell(read)
    for timeline, outputs in zip(timelines, held, strict=True):
        outputs.extend(timeline.end())
    await _hand_over(held, take)
    await _settle(replays, take)


async def all_inputs(pages: AsyncIterator[list[Input]], tell: Tell) -> list[Input]:
    """Read pages of inputs to their end."""
    found: list[Input] = []
    async for page in pages:
        found += page
        tell(len(found))
    return found


async def _hand_over(held: list[list[Output]], take: Take) -> None:
    for number, outputs in enumerate(held):
        await take(number, outputs[:])
        outputs.clear()


async def _settle(replays: Sequence[Replay], take: Take) -> None:
    for number, replay in enumerate(replays):
        await take(number, list(replay.settle()))
