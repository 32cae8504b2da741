"""A judge at a scripted server, asked from a test that knows no event loop."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import SecretStr

from streams.evaluators.endpoint import Endpoint
from streams.evaluators.evaluation import Subject, Verdict
from streams.evaluators.judge import ModelJudge, Prices

KEY = "sk-a-very-secret-key"
T = TypeVar("T")


def trace(**fields: Any) -> dict[str, Any]:
    """A whole trace as the wire gives it: inputs and outputs are JSON text."""
    span = {
        "span_id": "s1",
        "parent_span_id": None,
        "name": "search",
        "kind": "TOOL",
        "status": "OK",
        "input": json.dumps({"q": "weather in Oslo"}),
        "output": json.dumps("rain"),
        "model": None,
        "token_usage": {},
        "cost": None,
        "metadata": "{}",
        "started_at": 2,
        "ended_at": 3,
        "completion_start_time": None,
        "model_parameters": "{}",
        "error": None,
    }
    whole = {
        "trace_id": "t1",
        "session_id": "s",
        "project": "default",
        "name": "ask",
        "status": "COMPLETED",
        "started_at": 1,
        "ended_at": 4,
        "input": json.dumps("What is the weather in Oslo?"),
        "output": json.dumps("It rains."),
        "metadata": "{}",
        "tags": [],
        "user_id": None,
        "environment": None,
        "release": None,
        "spans": [span],
        "turn_index": None,
        "ends_turn": True,
    }
    return {**whole, **fields}


async def with_endpoint(url: str, use: Callable[[Endpoint], Awaitable[T]], **options: Any) -> T:
    """Use an endpoint and close it; backoff takes no time, and nothing a test waits for takes a minute."""
    settings = {"timeout_s": 60.0, "limit": asyncio.Semaphore(8), "backoff_s": 0.001, **options}
    endpoint = Endpoint("judge", url, SecretStr(KEY), **settings)
    try:
        return await use(endpoint)
    finally:
        await endpoint.close()


def judged(
    url: str, metric: str, *, subject: Subject | None = None, timeout_s: float = 60.0, **options: Any
) -> Verdict:
    """The verdict of a judge at *url* whose model is `m`."""

    async def use(endpoint: Endpoint) -> Verdict:
        judge = ModelJudge(endpoint, "m", **options)
        return await judge.judge(metric, subject or Subject(trace()))

    return asyncio.run(with_endpoint(url, use, timeout_s=timeout_s))


PRICES = Prices(read=2.0, written=10.0)
