"""How each metric is judged, step by step: what a model is asked, and how its answers become a value."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from streams.evaluators.answers import (
    A,
    ArgumentVerdicts,
    Completion,
    Confidence,
    Plan,
    Reason,
    Scored,
    Task,
    TaskAndOutcome,
    ToolCalls,
    ToolUse,
)


class Ask(Protocol):
    """Puts one step's question to a model. The trace is shown where *trace* says so, *data* always."""

    async def __call__(self, step: str, expected: type[A], /, *, trace: bool, **data: Any) -> A:
        """Return the answer.

        Raises:
            EndpointFailed: there is none.
        """


@dataclass(frozen=True, slots=True)
class Finding:
    """A metric's value and what led to it."""

    value: float
    reason: str
    working: Mapping[str, Any] = field(default_factory=dict)
    """For the score's metadata."""


async def task_completion(ask: Ask) -> Finding:
    """How much of the task the outcome fulfils."""
    found = await ask("extract", TaskAndOutcome, trace=True)
    judged = await ask("verdict", Completion, trace=False, task=found.task, outcome=found.outcome)
    return Finding(judged.verdict, judged.reason)


async def tool_correctness(ask: Ask) -> Finding:
    """Whether the right tools were called."""
    found = await ask("extract", ToolUse, trace=True)
    judged = await ask("score", Scored, trace=False, **found.model_dump())
    return Finding(judged.score, judged.reason)


async def argument_correctness(ask: Ask) -> Finding:
    """The share of tool calls whose arguments were right; 1 where there is none."""
    found = await ask("extract", ToolCalls, trace=True)
    if not found.tool_calls:
        return Finding(1.0, "the agent called no tool", {"verdicts": 0})
    verdicts = (await ask("verdicts", ArgumentVerdicts, trace=False, **found.model_dump())).verdicts
    if not verdicts:
        return Finding(1.0, "the judge gave no verdict on a call", {"verdicts": 0})
    right = sum(each.verdict == "yes" for each in verdicts)
    value = right / len(verdicts)
    given = [each.model_dump() for each in verdicts]
    said = await ask("reason", Reason, trace=False, verdicts=given, share_right=value)
    return Finding(value, said.reason, {"verdicts": len(verdicts), "right": right})


async def step_efficiency(ask: Ask) -> Finding:
    """How directly the agent worked."""
    task = (await ask("task", Task, trace=True)).task
    judged = await ask("score", Scored, trace=True, task=task)
    return Finding(judged.score, judged.reason)


async def confidence(ask: Ask) -> Finding:
    """How much trust the agent's work deserves."""
    judged = await ask("confidence", Confidence, trace=True)
    return Finding(judged.confidence, judged.reason)


async def plan_adherence(ask: Ask) -> Finding:
    """How faithfully the agent carried out its plan; 1 without one."""
    task = (await ask("task", Task, trace=True)).task
    plan = (await ask("plan", Plan, trace=True, task=task)).plan
    if not plan:
        return _NO_PLAN
    judged = await ask("score", Scored, trace=True, task=task, plan=plan)
    return Finding(judged.score, judged.reason, {"plan_steps": len(plan)})


async def plan_quality(ask: Ask) -> Finding:
    """How good the agent's plan is for its task, whatever came of it; 1 without one."""
    task = (await ask("task", Task, trace=True)).task
    plan = (await ask("plan", Plan, trace=True, task=task)).plan
    if not plan:
        return _NO_PLAN
    judged = await ask("score", Scored, trace=False, task=task, plan=plan)
    return Finding(judged.score, judged.reason, {"plan_steps": len(plan)})


_NO_PLAN: Final = Finding(1.0, "the agent stated no plan", {"plan_steps": 0})

STEPS: Final[Mapping[str, Callable[[Ask], Awaitable[Finding]]]] = {
    function.__name__: function
    for function in (
        task_completion,
        tool_correctness,
        argument_correctness,
        step_efficiency,
        confidence,
        plan_adherence,
        plan_quality,
    )
}
