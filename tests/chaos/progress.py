"""Watches how far every partition has come: when the pipeline makes progress again after a fault, and when it rests."""

import asyncio
import time
from collections.abc import Mapping

from aiokafka.errors import KafkaError
from faust.types import TP

from streams.engine import Offsets
from streams.security import connection
from streams.topics import EVAL_SCORES, NOTICE_CANDIDATES, SESSION_LOG, TRACE_INGESTED
from tests.pipeline.harness import Pipeline

LOOK_S = 0.25


class Progress:
    """Compares what the group has committed with where the partitions end."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        settings = pipeline.settings
        counts = {
            TRACE_INGESTED: settings.input_partitions,
            EVAL_SCORES: settings.input_partitions,
            SESSION_LOG: settings.log_partitions,
            NOTICE_CANDIDATES: settings.candidate_partitions,
        }
        self.inputs = self._tps(counts, TRACE_INGESTED, EVAL_SCORES)
        self.logs = self._tps(counts, SESSION_LOG, NOTICE_CANDIDATES)

    def ends(self, patience_s: float = 60.0) -> dict[TP, int]:
        """Return where every partition ends."""
        return self._ask(patience_s)[0]

    def behind(self, ends: Mapping[TP, int]) -> list[TP]:
        """Return the partitions that have not been read to these ends."""
        committed = self._ask(60.0)[1]
        return [tp for tp, end in ends.items() if (committed[tp] or 0) < end]

    def wait_for(self, ends: Mapping[TP, int], patience_s: float) -> list[TP]:
        """Wait until every partition has been read to these ends; returns those that were not, in time."""
        deadline = time.monotonic() + patience_s
        while behind := self.behind(ends):
            if time.monotonic() > deadline:
                return behind
            time.sleep(LOOK_S)
        return []

    def wait_for_rest(self, quiet_s: float, patience_s: float) -> list[TP]:
        """Wait until nothing has been appended and nothing was left unread for so long; input must have stopped."""
        deadline = time.monotonic() + patience_s
        last, since = self.ends(), time.monotonic()
        while True:
            ends = self.ends()
            behind = self.behind(ends)
            if ends != last or behind:
                last, since = ends, time.monotonic()
            if time.monotonic() - since > quiet_s:
                return []
            if time.monotonic() > deadline:
                return behind or [tp for tp in ends if ends[tp] != last[tp]]
            time.sleep(LOOK_S)

    def _tps(self, counts: Mapping[str, int], *roles: str) -> list[TP]:
        topics = self._pipeline.topics
        return [TP(topics[role].name, number) for role in roles for number in range(counts[role])]

    def _ask(self, patience_s: float) -> tuple[dict[TP, int], dict[TP, int | None]]:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return asyncio.run(asyncio.wait_for(self._ask_once(), 10))
            except (KafkaError, TimeoutError, OSError, KeyError):
                # A broker is away, or a partition has no leader yet.
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_S)

    async def _ask_once(self) -> tuple[dict[TP, int], dict[TP, int | None]]:
        offsets = Offsets(connection(self._pipeline.settings), lists_ends=True)
        tps = [*self.inputs, *self.logs]
        try:
            return await offsets.end_offsets(tps), await offsets.committed(self._pipeline.settings.app_id, tps)
        finally:
            await offsets.stop()
