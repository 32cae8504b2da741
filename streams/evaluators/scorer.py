"""Scores one target after the other, side by side within bounds: what is waited for, asked, computed, and given up."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from streams.core.eval_requests import Target, is_of_ladder
from streams.core.model import EvalRequest, TraceStatus
from streams.evaluators.budget import Budget
from streams.evaluators.evaluation import Evaluator, Subject, Verdict, failed
from streams.evaluators.fair_slots import FairSlots
from streams.evaluators.lookups import Absent, Lookups
from streams.evaluators.metrics import METRICS, MetricKind
from streams.evaluators.session_metrics import agent_consistency, agent_reliability
from streams.settings import Settings

log = structlog.get_logger(__name__)

_ANY_STATUS: Final = frozenset(str(status) for status in TraceStatus)
_FINAL: Final = frozenset({str(TraceStatus.COMPLETED), str(TraceStatus.ERROR)})


@dataclass(frozen=True, slots=True)
class Scored:
    """What came of one target."""

    target: Target
    verdict: Verdict
    evals: int = 0
    """Judgements asked for."""
    refused: str = ""
    """The limit that was met, where it was met for the first time."""


Done = Callable[[Scored], None]


class Scorer:
    """Shared by all partitions of a worker: a judge that is slow for one session leaves room for the others."""

    def __init__(self, evaluator: Evaluator, lookups: Lookups, settings: Settings) -> None:
        self._evaluator = evaluator
        self._lookups = lookups
        self._timeout_s = settings.eval_timeout_s
        self._statuses = _FINAL.union(settings.evaluated_statuses)
        # Apart from each other: what waits for a judge does not hold up what needs none.
        kinds = (MetricKind.JUDGE, MetricKind.EMBEDDING)
        self._slots = {kind: FairSlots(settings.eval_concurrency) for kind in kinds}

    async def score(
        self,
        partition: int,
        request: EvalRequest,
        trace_id: str | None,
        targets: Collection[Target],
        budget: Budget | None,
        done: Done,
    ) -> None:
        """Score one trace, or the session, by some metrics; *done* is called with each as it comes.

        budget: what judgements are taken from; none for as many as it takes.
        """
        if trace_id is None:
            for target in targets:
                done(Scored(target, await self._session(partition, request, target.metric)))
            return
        # The ladder asks once a trace is to be evaluated: an earlier state of it is not what is to be judged.
        statuses = self._statuses if is_of_ladder(request) else _ANY_STATUS
        try:
            subject = await self._lookups.subject(partition, request.session_id, trace_id, statuses)
        except Absent as absent:
            for target in targets:
                done(Scored(target, failed(str(absent))))
            return
        await asyncio.gather(*(self._trace(request, target, subject, budget, done) for target in targets))

    async def _trace(
        self, request: EvalRequest, target: Target, subject: Subject, budget: Budget | None, done: Done
    ) -> None:
        kind = METRICS[target.metric].kind
        judged = kind is MetricKind.JUDGE
        async with self._slots[kind].slot(request.session_id, urgent=is_of_ladder(request)):
            if judged and budget is not None and (limit := budget.take()):
                first = limit not in budget.refused
                budget.refused.add(limit)
                done(Scored(target, failed(budget.refusal(limit)), refused=limit if first else ""))
                return
            verdict = await self._verdict(target.metric, subject, request.model)
        if judged and budget is not None:
            budget.used(verdict.usage)
        done(Scored(target, verdict, int(judged)))

    async def _verdict(self, metric: str, subject: Subject, model: str | None) -> Verdict:
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                return await self._evaluator.evaluate(metric, subject, model=model)
        except Exception as error:
            if limit.expired():
                return failed(f"no answer within {self._timeout_s:g} s (eval_timeout_s)")
            log.exception("evaluator_broke", metric=metric)
            return failed(f"the evaluator broke: {type(error).__name__}: {error}")

    async def _session(self, partition: int, request: EvalRequest, metric: str) -> Verdict:
        session_id = request.session_id
        try:
            heard = await self._lookups.signals(partition, request.log_offset)
        except Absent as absent:
            return failed(str(absent))
        if not request.signal_weights:
            session = heard.session(session_id)
            return session.agent_reliability() if metric == "agent_reliability" else session.agent_consistency()
        signals: Mapping[str, Mapping[str, float]] = heard.traces(session_id)
        compute = agent_reliability if metric == "agent_reliability" else agent_consistency
        return compute(list(signals), signals, request.signal_weights)
