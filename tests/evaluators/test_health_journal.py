"""A judge or embedder that stops answering is journaled, and shown, until it answers again."""

import asyncio
import json

from streams.agents.outbox import Outbox
from streams.engine import AppendFailed
from streams.evaluators import health_journal
from streams.evaluators.health import HealthChange
from streams.evaluators.health_journal import HealthJournal
from streams.metrics import Metrics
from streams.settings import load
from streams.topics import BY_ROLE, named
from streams.wire import Wire


class Publisher:
    def __init__(self):
        self.values, self.refusals = [], 2

    async def publish(self, outs):
        if self.refusals:
            self.refusals -= 1
            raise AppendFailed("away")
        self.values += [json.loads(out.value) for out in outs]


def test_each_change_is_journaled_until_it_has_its_ack(monkeypatch):
    monkeypatch.setattr(health_journal, "RETRY_S", 0.01)

    async def whole():
        publisher, metrics = Publisher(), Metrics()
        outbox = Outbox(Wire("json"), named({}), dict.fromkeys(BY_ROLE, 1))
        journal = HealthJournal(load(environ={}).settings, publisher, outbox, metrics)
        running = asyncio.ensure_future(journal.run())
        journal.tell(HealthChange("judge", healthy=False, reason="it does not answer"))
        assert metrics.registry.get_sample_value("tgate_eval_degraded", {"part": "judge"}) == 1
        journal.tell(HealthChange("judge", healthy=True, reason="it answers again"))
        async with asyncio.timeout(60):
            while len(publisher.values) < 2:  # noqa: ASYNC110 - a poll
                await asyncio.sleep(0.01)
        running.cancel()
        assert metrics.registry.get_sample_value("tgate_eval_degraded", {"part": "judge"}) == 0
        return publisher.values

    first, second = asyncio.run(whole())
    assert (first["kind"], first["reason"], first["detail"]) == ("health", "judge_degraded", "it does not answer")
    assert (second["kind"], second["reason"], second["detail"]) == ("health", "judge_back", "it answers again")
    assert first["journal_id"] != second["journal_id"]
