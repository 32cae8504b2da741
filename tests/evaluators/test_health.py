"""A part that does not answer is told once, its reason is known at once, and so is its recovery."""

import asyncio
import logging

from streams.errors import EndpointFailed
from streams.evaluators.health import Health, HealthChange

WAIT_S = 60.0


class Part:
    """Answers while *up*."""

    def __init__(self, *, up: bool) -> None:
        self.up, self.probes = up, 0
        self.recovered = asyncio.Event()
        self.told: list[HealthChange] = []

    async def probe(self) -> None:
        self.probes += 1
        await asyncio.sleep(0)
        if not self.up:
            raise EndpointFailed("nobody\x1b there")

    def tell(self, change: HealthChange) -> None:
        self.told.append(change)
        if change.healthy:
            self.recovered.set()


def watched(part: Part, **options: float) -> Health:
    health = Health(**{"first_pause_s": 0.01, "longest_pause_s": 0.02, **options})
    health.watch("judge", part.probe)
    health.listen(part.tell)
    return health


def test_one_probe_before_the_first_evaluation_and_none_after():
    async def scene() -> None:
        part = Part(up=True)
        health = watched(part)
        assert part.probes == 0
        assert await asyncio.gather(*(health.trouble("judge") for _ in range(5))) == [None] * 5
        assert (part.probes, part.told, health.degraded) == (1, [], {})
        await health.close()

    asyncio.run(scene())


def test_what_nobody_watches_is_never_degraded():
    assert asyncio.run(Health().trouble("judge")) is None


def test_one_warning_one_change_and_every_answer_while_it_is_degraded(caplog):
    async def scene() -> None:
        part = Part(up=False)
        health = watched(part, first_pause_s=WAIT_S, longest_pause_s=WAIT_S)
        assert await asyncio.gather(*(health.trouble("judge") for _ in range(5))) == ["nobody  there"] * 5
        assert part.probes == 1
        assert part.told == [
            HealthChange(
                "judge",
                healthy=False,
                reason="the judge is degraded, its scores are FAILED until it answers: nobody  there",
            )
        ]
        assert health.degraded == {"judge": "nobody  there"}
        await health.close()

    asyncio.run(scene())
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "the judge is degraded, its scores are FAILED until it answers: nobody  there")
    ]


def test_it_is_probed_again_and_its_recovery_is_told(caplog):
    async def scene() -> None:
        part = Part(up=False)
        health = watched(part)
        assert await health.trouble("judge")
        while part.probes < 4:  # noqa: ASYNC110  (there is nothing to wait for but the count itself)
            await asyncio.sleep(0.005)
        part.up = True
        await asyncio.wait_for(part.recovered.wait(), WAIT_S)
        probes = part.probes
        assert await health.trouble("judge") is None
        assert part.probes == probes
        assert [change.healthy for change in part.told] == [False, True]
        assert part.told[1].reason == "the judge answers again"
        await health.close()

    asyncio.run(scene())
    assert len(caplog.records) == 2


def test_a_part_in_doubt_is_probed_before_it_is_asked_again():
    async def scene() -> None:
        part = Part(up=True)
        health = watched(part, first_pause_s=WAIT_S, longest_pause_s=WAIT_S)
        assert await health.trouble("judge") is None
        part.up = False
        health.doubt("judge")
        health.doubt("judge")
        assert await health.trouble("judge") == "nobody  there"
        health.doubt("judge")  # known already: an evaluation that was under way says it late
        assert await health.trouble("judge") == "nobody  there"
        assert (part.probes, len(part.told)) == (2, 1)
        await health.close()

    asyncio.run(scene())


def test_an_interrupted_probe_has_decided_nothing():
    async def scene() -> None:
        part = Part(up=False)
        health = watched(part, first_pause_s=WAIT_S, longest_pause_s=WAIT_S)
        asking = asyncio.create_task(health.trouble("judge"))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert await health.trouble("judge") == "nobody  there"
        await health.close()

    asyncio.run(scene())


def test_a_probe_with_a_bug_degrades_as_well(caplog):
    async def scene() -> None:
        async def probe() -> None:
            raise ZeroDivisionError("division by zero")

        health = Health(first_pause_s=WAIT_S)
        health.watch("judge", probe)
        assert await health.trouble("judge") == "ZeroDivisionError: division by zero"
        await health.close()

    asyncio.run(scene())
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
