"""Plans the runs of the eval-log partitions that this worker owns: finds their targets and asks for their scores."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from aiokafka.errors import KafkaError

from streams.agents.outbox import Outbox
from streams.core.eval_log import EvalLogFold
from streams.core.run_plan import Limits, Part, planned, planned_again, requests, target_count
from streams.core.runs import RunBroke, RunPlanned, RunState
from streams.engine import EngineError, Publisher
from streams.engine import TooLarge as RecordTooLarge
from streams.errors import BrokerUnavailable, TgateError, TooLarge
from streams.evaluators.metrics import METRICS, MetricKind
from streams.evaluators.survey import failed_among, scores_of, traces_before
from streams.evaluators.wishes import TRACE_METRICS, checked
from streams.reading import Place
from streams.settings import Settings
from streams.wire import Wire

log = structlog.get_logger(__name__)

BATCH: Final = 500
SILENT_DAYS: Final = 7
DAY_MS: Final = 86_400_000
JUDGED: Final = frozenset(name for name, metric in METRICS.items() if metric.kind is MetricKind.JUDGE)

AWAY: Final = (KafkaError, EngineError, BrokerUnavailable, TimeoutError, OSError)
"""What a broker that does not answer makes of a question."""


@dataclass(frozen=True)
class OwnerDesk:
    """What the owners of eval-log partitions work with."""

    settings: Settings
    folds: Mapping[int, EvalLogFold]
    publisher: Publisher
    outbox: Outbox
    wire: Wire
    traces: Place
    scores: Place


class Planner:
    """Plans one run after the other. A plan made twice, after a crash or by two owners, asks for the same twice."""

    def __init__(self, desk: OwnerDesk) -> None:
        self._desk = desk
        self._told: set[str] = set()

    async def run(self) -> None:
        """Look for runs to plan until cancelled; a broker that is away is waited for."""
        while True:
            try:
                await self.beat(time.time_ns() // 1_000_000)
            except AWAY as error:
                log.warning("no_plan", error=repr(error), hint="the broker does not answer; trying again")
            await asyncio.sleep(self._desk.settings.tick_interval_s)

    async def beat(self, now: int) -> None:
        """Plan what is pending, and give up what nobody answers; *now* in milliseconds of this worker's clock."""
        folds = list(self._desk.folds.values())
        self._told &= {run_id for fold in folds for run_id in fold.unfinished}
        for fold in folds:
            for run_id in fold.unplanned:
                if run_id not in self._told and (state := fold.run(run_id)) is not None:
                    await self._plan(state)
            for run_id in fold.silent_since(now - SILENT_DAYS * DAY_MS):
                if run_id not in self._told:
                    await self._break(run_id, f"no evaluator has answered for {SILENT_DAYS} days")

    async def _plan(self, state: RunState) -> None:
        """Ask for a run's scores, then say that all of it is asked for; a run that cannot be planned breaks."""
        run_id = state.run.run_id
        try:
            parts = await self._parts(state)
            settings = self._desk.settings
            asked = requests(state.run, parts, JUDGED, Limits(settings.max_evals, settings.max_eval_tokens))
            outs = [self._desk.outbox.record(request) for request in asked]
            for at in range(0, len(outs), BATCH):
                await self._desk.publisher.publish(outs[at : at + BATCH])
            targets = target_count(state.run, parts)
            await self._say(RunPlanned(run_id, targets, len(parts)))
        except (RecordTooLarge, TooLarge):
            await self._break(run_id, "it names more traces of one session than a request can hold: run it over traces")
        except AWAY:
            raise
        except Exception as error:
            log.exception("run_not_planned", run=run_id)
            await self._break(run_id, str(error) if isinstance(error, TgateError) else repr(error))
        else:
            log.info("run_planned", run=run_id, targets=targets, requests=len(parts))

    async def _parts(self, state: RunState) -> tuple[Part, ...]:
        run, desk = checked(state.run), self._desk
        if run.sampling_rate == 0.0:
            return ()
        if run.retry_of is not None:
            # From the beginning: when the other run was made is not known here.
            return planned_again(run, failed_among(await scores_of(desk.scores, desk.wire, run.retry_of, 0)))
        return planned(run, await traces_before(desk.traces, desk.wire, state.ends), TRACE_METRICS)

    async def _break(self, run_id: str, error: str) -> None:
        log.warning("run_broke", run=run_id, error=error)
        await self._say(RunBroke(run_id, error))

    async def _say(self, event: RunPlanned | RunBroke) -> None:
        """Append an event, once: the fold reads it later."""
        await self._desk.publisher.publish([self._desk.outbox.record(event)])
        self._told.add(event.run_id)
