"""What the evaluators' stages remember: immutable values, as they are stored."""

from collections.abc import Mapping
from typing import NamedTuple

from streams.core.model import EvalRequest


class StagePosition(NamedTuple):
    """Where a stage stands in one partition."""

    position: int = 0
    """The next offset to read."""
    now: int = 0
    """The largest record time seen, milliseconds since 1970, UTC."""
    sources: Mapping[tuple[str, str, int], int] = {}
    """(topic, topic id, partition) of an input -> last offset applied; of the session log only."""


class SignalValue(NamedTuple):
    """What has been said of one signal of a trace."""

    name: str
    annotated: float | None = None
    """A person's newest word."""
    scored: float | None = None
    """The newest score of anyone else."""


class TraceSignals(NamedTuple):
    """The signals of one trace."""

    session_id: str
    trace_id: str
    place: int
    """Log offset of its first signal: orders the traces of a session."""
    values: tuple[SignalValue, ...]
    changed_at: int = 0
    """When its last signal came, milliseconds since 1970, UTC."""


class RequestState(NamedTuple):
    """A request that is being worked on."""

    request: EvalRequest
    """With the metrics of all its attempts."""
    accepted_at: int
    """When the evaluators first read it, milliseconds since 1970, UTC."""
    answered: tuple[int, ...] = ()
    """Numbers of the scores that are acknowledged, as bits; see eval_requests.targets."""
    failed: int = 0
    """Of those, the ones without value."""
    evals: int = 0
    """Judgements that it has cost."""
    input_tokens: int = 0
    output_tokens: int = 0
    judge_calls: int = 0
    cost: float = 0.0


class AnsweredRequest(NamedTuple):
    """A request all of whose scores are acknowledged: enough to know its repeats."""

    metrics: tuple[str, ...]
    answered_at: int
    """Milliseconds since 1970, UTC."""


class Spending(NamedTuple):
    """What the ladder's requests of one session have cost so far."""

    evals: int = 0
    tokens: int = 0
    changed_at: int = 0
    """Milliseconds since 1970, UTC."""
