"""Works on the requests of one partition: starts their scores, publishes what comes, then remembers it as answered."""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from streams.agents.outbox import Outbox
from streams.core.eval_requests import Answer, Target, is_of_ladder
from streams.core.eval_states import Spending
from streams.core.model import EvalRequest, ScoreStatus
from streams.engine import AppendFailed, EngineError, Out, PartitionState, Publisher, Revoked
from streams.errors import TgateError
from streams.evaluators.budget import Budget
from streams.evaluators.evaluation import failed
from streams.evaluators.request_book import Key, RequestBook, key_of
from streams.evaluators.request_results import answer_of, limit_met, word_of
from streams.evaluators.scorer import Scored, Scorer
from streams.evaluators.scoring import pass_line, score, written
from streams.metrics import EvaluatorMetrics
from streams.settings import Settings
from streams.topics import EVAL_SCORES
from streams.wire import Wire

log = structlog.get_logger(__name__)

MAX_RUNNING: Final = 256
"""Requests of a partition worked on at once; the rest waits in order, the ladder's before others."""
MAX_STORED: Final = 500
"""Scores published and remembered at once."""
MAX_BUDGETS: Final = 10_000
RETRY_S: Final = 1.0


@dataclass(frozen=True)
class Desk:
    """What the work on all partitions shares."""

    settings: Settings
    scorer: Scorer
    publisher: Publisher
    outbox: Outbox
    wire: Wire
    metrics: EvaluatorMetrics


class RequestWork:
    """One partition's requests, from when it is restored until it is closed.

    failed: called when nothing can be remembered any more; the partition is then built again.
    """

    def __init__(self, desk: Desk, state: PartitionState, book: RequestBook, failed: Callable[[], None]) -> None:
        self.book = book
        self._desk = desk
        self._state = state
        self._failed = failed
        self._waiting: tuple[deque[Key], deque[Key]] = deque(), deque()
        """The ladder's, and those of others."""
        self._running: dict[Key, set[int]] = {}
        """Request -> numbers of the targets that are under way."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._results: asyncio.Queue[tuple[Key, Scored]] = asyncio.Queue()
        self._budgets: dict[str, Budget] = {}
        self._is_limited = bool(desk.settings.max_evals or desk.settings.max_eval_tokens)
        self._is_draining = False
        self._writer = asyncio.get_running_loop().create_task(self._write(), name=f"scores of {state.source}")

    def take(self, keys: Iterable[Key]) -> None:
        """Work on open requests that are stored."""
        for key in keys:
            self._waiting[not is_of_ladder(self.book.open[key].request)].append(key)
        self._start_more()

    def close(self) -> None:
        """Stop at once: what is not remembered is done again by the next owner."""
        with suppress(KeyError):  # nothing was counted
            self._desk.metrics.open_requests.remove(self._state.partition)
        self._writer.cancel()
        for task in self._tasks:
            task.cancel()

    async def drain(self) -> None:
        """Start nothing more, and return when what is under way is remembered."""
        self._is_draining = True
        while self._tasks and not self._writer.done():
            await asyncio.wait([*self._tasks, self._writer], return_when=asyncio.FIRST_COMPLETED)
        if not self._writer.done():
            stored = asyncio.ensure_future(self._results.join())
            await asyncio.wait([stored, self._writer], return_when=asyncio.FIRST_COMPLETED)
            stored.cancel()

    # -- scoring

    def _start_more(self) -> None:
        while len(self._running) < MAX_RUNNING and not self._is_draining:
            ladder, others = self._waiting
            if not (queue := ladder or others):
                return
            self._start(queue.popleft())

    def _start(self, key: Key) -> None:
        """Start what is missing of a request and not under way."""
        under_way = self._running.setdefault(key, set())
        by_trace: dict[str | None, list[Target]] = defaultdict(list)
        for target in self.book.missing(key) if key in self.book.open else ():
            if target.number not in under_way:
                by_trace[target.trace_id].append(target)
                under_way.add(target.number)
        if not under_way:
            del self._running[key]
        for trace_id, targets in by_trace.items():
            task = asyncio.get_running_loop().create_task(self._score(key, trace_id, targets))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _score(self, key: Key, trace_id: str | None, targets: Sequence[Target]) -> None:
        request = self.book.open[key].request
        left = set(targets)
        began = time.perf_counter()

        def done(scored: Scored) -> None:
            left.discard(scored.target)
            self._desk.metrics.seconds.labels(scored.target.metric).observe(time.perf_counter() - began)
            self._results.put_nowait((key, scored))

        try:
            partition, budget = self._state.partition, self._budget(key)
            await self._desk.scorer.score(partition, request, trace_id, targets, budget, done)
        except Exception as error:
            # Whatever it is: a request that is never answered would never end.
            log.exception("score_failed", session=request.session_id, trace=trace_id)
            for target in sorted(left):
                done(Scored(target, failed(f"evaluators broke: {type(error).__name__}: {error}")))

    def _budget(self, key: Key) -> Budget | None:
        """Return what a request's judgements are taken from; none where nothing bounds them."""
        state, settings = self.book.open[key], self._desk.settings
        request = state.request
        if is_of_ladder(request) and not self._is_limited:
            return None
        name = _budget_name(request)
        if name not in self._budgets and is_of_ladder(request):
            before = self.book.spending(request.session_id) or Spending()
            limits = settings.max_evals, settings.max_eval_tokens
            self._budgets[name] = Budget(f"session {request.session_id}", before.evals, before.tokens, *limits)
        elif name not in self._budgets:
            tokens = state.input_tokens + state.output_tokens
            owner = f"part {request.part} of run {request.run_id}"
            self._budgets[name] = Budget(owner, state.evals, tokens, request.max_evals, request.max_tokens)
        return self._budgets[name]

    # -- publishing and remembering

    async def _write(self) -> None:
        try:
            while True:
                results = [await self._results.get()]
                while len(results) < MAX_STORED and not self._results.empty():
                    results.append(self._results.get_nowait())
                await self._store(results)
                for _ in results:
                    self._results.task_done()
                self._start_more()
        except Revoked as error:
            log.info("scores_left", reason=str(error))
        except Exception as error:
            known = isinstance(error, EngineError)
            log.warning("scores_not_stored", error=repr(error), hint="the partition is built again", exc_info=not known)
            await asyncio.sleep(RETRY_S)
            self._failed()

    async def _store(self, results: Sequence[tuple[Key, Scored]]) -> None:
        """Publish scores, say of requests that are answered by them that they are, and remember both."""
        now = time.time_ns() // 1_000_000
        answers: dict[Key, list[Answer]] = defaultdict(list)
        costs: dict[str, list[Answer]] = defaultdict(list)
        outs: list[Out] = []
        for key, scored in results:
            request = self.book.open[key].request
            outs += self._outs(request, scored, now)
            answers[key].append(answer_of(scored))
            if self._is_limited and is_of_ladder(request) and scored.evals:
                costs[request.session_id].append(answers[key][-1])
        await self._publish(outs)
        for key, given in answers.items():
            self.book.note(key, given)
            self._running[key] -= {answer.number for answer in given}
            if not self._running[key]:
                del self._running[key]
        over = [self.book.open[key] for key in answers if self.book.is_answered(key)]
        await self._publish([self._desk.outbox.record(word_of(state, now)) for state in over])
        await self._state.commit(self.book.changes(answers.keys(), costs, now))
        self._count(scored for _, scored in results)
        self._forget_budgets()

    def _count(self, results: Iterable[Scored]) -> None:
        """Show what is acknowledged and remembered."""
        metrics = self._desk.metrics
        metrics.open_requests.labels(self._state.partition).set(len(self.book.open))
        for scored in results:
            usage, value = scored.verdict.usage, scored.verdict.value
            status = ScoreStatus.FAILED if value is None else ScoreStatus.SUCCESS
            metrics.scores.labels(scored.target.metric, status).inc()
            metrics.tokens.labels("input").inc(usage.input_tokens)
            metrics.tokens.labels("output").inc(usage.output_tokens)
            metrics.cost.inc(usage.cost)

    def _forget_budgets(self) -> None:
        """Drop budgets that nothing is taken from now: what they know is stored."""
        if len(self._budgets) > MAX_BUDGETS:
            used = {_budget_name(state.request) for state in self.book.open.values()}
            self._budgets = {name: budget for name, budget in self._budgets.items() if name in used}

    def _outs(self, request: EvalRequest, scored: Scored, now: int) -> list[Out]:
        """Return a score as a record, and the journal entry of a limit."""
        desk = self._desk
        line = pass_line(request, scored.target.metric, desk.settings.thresholds)
        key = request.session_id.encode("utf-8", "surrogatepass")
        outs = []
        try:
            value = written(desk.wire, score(request, scored.target, scored.verdict, line, now))
            outs.append(desk.outbox.to(EVAL_SCORES, key, value))
        except TgateError:
            log.exception("score_not_written", metric=scored.target.metric, session=request.session_id)
        if scored.refused:
            outs.append(desk.outbox.record(limit_met(request, scored, now)))
        return outs

    async def _publish(self, outs: Sequence[Out]) -> None:
        """Publish, however often it takes."""
        while outs:
            try:
                await self._desk.publisher.publish(outs)
            except AppendFailed as error:
                log.warning("scores_not_published", error=str(error), hint="the broker does not answer; trying again")
                await asyncio.sleep(RETRY_S)
            else:
                return


def _budget_name(request: EvalRequest) -> str:
    return request.session_id if is_of_ladder(request) else "\0".join(map(str, key_of(request)))
