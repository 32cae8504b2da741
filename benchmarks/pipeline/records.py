"""The data of every measurement: sessions that climb, stand still and fall back, live at the same time.

A session has some traces of about 4 KiB, each followed by one score of about 300 bytes for each tier-1 metric. The same
numbers give the same records, on every machine and for every contender.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

METRICS = ("task_completion", "coherence")
PER_TURN = 1 + len(METRICS)
"""Records of one turn: its trace, then a score for each metric."""
STARTED_AT = 1_767_600_000_000

_WORDS = re.findall(
    r"\w+",
    "the agent opens file reads error log line stack frame retries call with other arguments table rows missing key "
    "value returns empty list parses response checks schema field type writes patch runs tests two of five pass then "
    "looks at imports finds cycle moves function renames module again searches docs for option timeout sets limit",
)
_TOOLS = ("search", "read_file", "write_file", "run_tests", "http_get", "sql_query")
_SPANS = 5


@dataclass(frozen=True)
class Workload:
    """How many records, and of what shape.

    records: rounded down to whole turns.
    session_traces: traces of each session.
    live_sessions: sessions that take turns in the stream at any time.
    project_sessions: sessions that share a project, and with it a circuit breaker.
    """

    records: int = 150_000
    session_traces: int = 12
    live_sessions: int = 2_000
    project_sessions: int = 5
    seed: int = 7

    @property
    def turns(self) -> int:
        """Traces, each of which is a turn of its own."""
        return self.records // PER_TURN


@dataclass(frozen=True, slots=True)
class Made:
    """One record to load: where it belongs and what it holds."""

    is_trace: bool
    key: bytes
    value: bytes


def records(workload: Workload) -> Iterator[Made]:
    """Yield the records in the order in which they come to be."""
    texts = _Texts(Random(workload.seed))
    chance = Random(workload.seed + 1)
    live = [_Session(number, chance) for number in range(workload.live_sessions)]
    # Sessions do not start together: a stream that is cut anywhere has old and young ones in it.
    for session in live:
        session.trace = chance.randrange(workload.session_traces)
    born = len(live)
    for turn in range(workload.turns):
        place = turn % len(live)
        session = live[place]
        if session.trace >= workload.session_traces:
            session = live[place] = _Session(born, chance)
            born += 1
        yield from session.turn(workload, texts, STARTED_AT + turn)


class _Session:
    """A session that has begun: its kind decides how its scores run."""

    def __init__(self, number: int, chance: Random) -> None:
        self.number = number
        self.trace = 0
        self._chance = chance
        self._kind = chance.choices(("climbs", "stalls", "falls"), (70, 20, 10))[0]

    def turn(self, workload: Workload, texts: "_Texts", now: int) -> Iterator[Made]:
        session_id = f"session-{self.number:08d}"
        trace_id = f"{self.number:08x}{self.trace:08x}{now:016x}"
        key = session_id.encode()
        project = f"project-{self.number // workload.project_sessions}"
        yield Made(is_trace=True, key=key, value=orjson.dumps(_trace(session_id, trace_id, project, texts, now)))
        for metric in METRICS:
            score = _score(session_id, trace_id, metric, self._value(), texts, now)
            yield Made(is_trace=False, key=key, value=orjson.dumps(score))
        self.trace += 1

    def _value(self) -> float:
        match self._kind:
            case "climbs":
                level = 0.15 + 0.07 * self.trace
            case "stalls":
                level = 0.3
            case _:
                level = 0.2 + 0.08 * self.trace if self.trace < 6 else 0.25
        return round(min(1.0, max(0.0, level + self._chance.uniform(-0.02, 0.02))), 3)


class _Texts:
    """Plain sentences, made once: making text must not be what loading costs."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._sentences = [" ".join(chance.choices(_WORDS, k=chance.randrange(8, 16))) for _ in range(2_000)]

    def of(self, sentences: int) -> str:
        """Return some sentences."""
        return ". ".join(self._chance.choices(self._sentences, k=sentences))


def _score(session_id: str, trace_id: str, metric: str, value: float, texts: _Texts, now: int) -> dict[str, Any]:
    return {
        "score_id": f"{trace_id}-{metric}",
        "session_id": session_id,
        "trace_id": trace_id,
        "name": metric,
        "value": value,
        "source": "AUTOMATED",
        "reason": texts.of(1)[:70],
        "metadata": {"evaluator": "judge-3"},
        "created_at": now + 900,
    }


def _trace(session_id: str, trace_id: str, project: str, texts: _Texts, now: int) -> dict[str, Any]:
    return {
        "trace_id": trace_id,
        "session_id": session_id,
        "project": project,
        "name": "answer",
        "status": "COMPLETED",
        "started_at": now,
        "ended_at": now + 800,
        "input": {"question": texts.of(4), "history": [texts.of(1), texts.of(1)]},
        "output": texts.of(8),
        "metadata": {"framework": "own loop", "attempt": now % 3, "commit": trace_id[:8]},
        "tags": ["nightly", "planner"],
        "user_id": f"user-{now % 977}",
        "environment": "production",
        "release": "2026.1",
        "spans": [_span(trace_id, number, texts, now) for number in range(_SPANS)],
    }


def _span(trace_id: str, number: int, texts: _Texts, now: int) -> dict[str, Any]:
    is_call = number % 2 == 0
    span = {
        "span_id": f"{trace_id[:16]}{number:04x}",
        "parent_span_id": None if number == 0 else f"{trace_id[:16]}0000",
        "name": "model" if is_call else _TOOLS[now % len(_TOOLS)],
        "kind": "LLM" if is_call else "TOOL",
        "status": "OK",
        "input": texts.of(2),
        "output": texts.of(2),
        "started_at": now + 100 * number,
        "ended_at": now + 100 * number + 80,
    }
    if is_call:
        span |= {"model": "model-4", "token_usage": {"input": 812, "output": 164, "total": 976}, "cost": 0.0031}
    return span
