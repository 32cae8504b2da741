"""The life of an evaluation request: which scores it asks for, what a repeat adds, what it costs, when it is answered."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, NamedTuple

from streams.core.bits import has_bit, with_bit
from streams.core.eval_states import AnsweredRequest, RequestState, Spending
from streams.core.ids import digest
from streams.core.model import EvalRequest

KEPT_MS: Final = 86_400_000
"""How long an answered request is known: its repeats come within minutes."""


class Target(NamedTuple):
    """One score that is asked for."""

    number: int
    """Among those of its request; a repeat with more metrics leaves it as it is."""
    metric: str
    trace_id: str | None
    """None for a score of the session."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A score that is acknowledged, and what it took."""

    number: int
    failed: bool
    evals: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    judge_calls: int = 0
    cost: float = 0.0


def is_of_ladder(request: EvalRequest) -> bool:
    """Whether the evaluation ladder asks, not a run of its own."""
    return bool(request.turn_id)


def targets(request: EvalRequest, session_metrics: Collection[str]) -> tuple[Target, ...]:
    """Return what a request asks for: each trace by each metric, and the session once by each session metric."""
    width = len(request.trace_ids) + 1
    found = []
    for index, metric in enumerate(request.metrics):
        if metric in session_metrics:
            found.append(Target(index * width, metric, None))
        else:
            found += [Target(index * width + at, metric, name) for at, name in enumerate(request.trace_ids, 1)]
    return tuple(found)


def score_id(request: EvalRequest, target: Target) -> str:
    """Return the id of a score: the same for every attempt, and after every restart."""
    judged = ("session", request.session_id) if target.trace_id is None else ("trace", target.trace_id)
    return digest("score", request.run_id, *judged, target.metric)


def accepted(known: RequestState | AnsweredRequest | None, request: EvalRequest, now: int) -> RequestState | None:
    """Return the state of a request that asks for something new, none for a repeat.

    A repeat answers silence only; it can ask for more than the first attempt where settings have changed meanwhile.
    """
    if known is None:
        return RequestState(request, now)
    held = known.request.metrics if isinstance(known, RequestState) else known.metrics
    more = tuple(metric for metric in request.metrics if metric not in held)
    if not more:
        return None
    if isinstance(known, RequestState):
        return known._replace(request=replace(known.request, metrics=(*held, *more)))
    return RequestState(replace(request, metrics=more), now)


def answered(state: RequestState, answers: Collection[Answer]) -> RequestState:
    """Return a request with more of its scores acknowledged; those that are so already count once."""
    new = {answer.number: answer for answer in answers if not has_bit(state.answered, answer.number)}.values()
    return state._replace(
        answered=reduce(with_bit, (answer.number for answer in new), state.answered),
        failed=state.failed + sum(answer.failed for answer in new),
        evals=state.evals + sum(answer.evals for answer in new),
        input_tokens=state.input_tokens + sum(answer.input_tokens for answer in new),
        output_tokens=state.output_tokens + sum(answer.output_tokens for answer in new),
        judge_calls=state.judge_calls + sum(answer.judge_calls for answer in new),
        cost=state.cost + sum(answer.cost for answer in new),
    )


def spent(spending: Spending | None, answers: Collection[Answer], now: int) -> Spending:
    """Return what a session has cost after more answers."""
    before = spending or Spending()
    return Spending(
        before.evals + sum(answer.evals for answer in answers),
        before.tokens + sum(answer.input_tokens + answer.output_tokens for answer in answers),
        now,
    )


def over_limit(evals: int, tokens: int, max_evals: int, max_tokens: int) -> str:
    """Return which limit forbids another judgement, empty where none does; a limit of 0 is none, below 0 all is used up."""
    if max_evals and max_evals <= evals:
        return "max_evals"
    return "max_eval_tokens" if max_tokens and max_tokens <= tokens else ""
