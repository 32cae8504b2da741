"""What an evaluator is asked and what it answers: the seam between the stages and everything that judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from streams.core.text import plain

if TYPE_CHECKING:
    from streams.evaluators.health import Health

HISTORY: Final = 3
"""Earlier traces of the session that a metric may look at."""
MAX_REASON: Final = 1024
"""UTF-8 bytes kept of a verdict's reason."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a trace metric sees."""

    trace: Mapping[str, Any]
    """The whole trace, fields as the schema Trace has them: inputs and outputs are JSON text."""
    history: Sequence[Mapping[str, Any]] = ()
    """At most HISTORY earlier traces of its session, whole, oldest first."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a verdict took of a model: 0 where none was asked."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost: float = 0.0
    """In the currency of the prices that the settings name."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """One metric's result for one target. Made by `scored` or `failed`, which keep it within its bounds."""

    value: float | None
    """In [0, 1], rounded to 4 decimals, higher is better; none: FAILED."""
    reason: str
    """Why, for people: printable, at most MAX_REASON bytes."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """How the value came about, as JSON has it: who judged, with what, and the terms of the arithmetic."""
    usage: Usage = Usage()


def scored(
    value: float, reason: str = "", metadata: Mapping[str, Any] | None = None, usage: Usage = Usage()
) -> Verdict:
    """Return the verdict of a metric that has a value; a value that is none, or outside [0, 1], fails."""
    if not 0.0 <= value <= 1.0:  # false for NaN
        return failed(f"the value {value} is not in [0, 1]", metadata, usage)
    return Verdict(round(value, 4) + 0.0, plain(reason, MAX_REASON), metadata or {}, usage)  # -0 is 0


def failed(reason: str, metadata: Mapping[str, Any] | None = None, usage: Usage = Usage()) -> Verdict:
    """Return the verdict of a metric that could not be judged."""
    return Verdict(None, plain(reason, MAX_REASON), metadata or {}, usage)


def with_threshold(verdict: Verdict, threshold: float) -> Verdict:
    """Return the verdict with its pass line in the metadata, and whether the value reaches it; the value stays."""
    if verdict.value is None:
        return verdict
    line = {"threshold": threshold, "success": verdict.value >= threshold}
    return replace(verdict, metadata={**verdict.metadata, **line})


class Evaluator(Protocol):
    """Judges traces: one per worker, made from the settings."""

    @property
    def health(self) -> "Health":
        """Whether what it asks answers, as last seen."""

    async def evaluate(self, metric: str, subject: Subject, *, model: str | None = None) -> Verdict:
        """Judge a trace by a metric of METRICS that is about traces; *model* takes the place of the configured one.

        A bad answer, or none, is a failed verdict, never an exception.
        """

    async def close(self) -> None:
        """Let go of connections."""
