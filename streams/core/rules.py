"""The settings that decide, as one value: what the fold obeys, and what a replay may change."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

from streams.core.gate import Gate
from streams.core.model import OUTCOME_METRIC
from streams.core.pace import Pace, pace_of

SESSION_METRICS = frozenset({"agent_reliability", "agent_consistency"})
"""They judge sessions whatever the settings say."""


def seconds(value: float) -> int:
    """Return *value* seconds in the core's unit, whole milliseconds."""
    return round(value * 1000)


class Waits(NamedTuple):
    """The rules' times in milliseconds, under their names without the unit."""

    turn_idle: int
    eval_deadline: int
    eval_retry_backoff: int
    score_wait: int
    first_score_wait: int
    unannounced_wait: int
    session_min_eval_interval: int
    session_ttl: int
    circuit_breaker_window: int


@dataclass(frozen=True)
class Rules:
    """Every setting that can change a decision. Times are in seconds; the meaning of each is in the settings table."""

    tier1_metrics: tuple[str, ...] = ("task_completion", "coherence")
    tier2_metrics: tuple[str, ...] = ("tool_correctness", "argument_correctness")
    tier3_metrics: tuple[str, ...] = ("plan_adherence", "plan_quality", "step_efficiency")
    session_metrics: tuple[str, ...] = ("agent_reliability", "agent_consistency")
    thresholds: Mapping[str, float] = field(default_factory=dict)
    enable_tier3: bool = False
    tier2_always: bool = False
    evaluated_statuses: tuple[str, ...] = ("COMPLETED",)

    gate_window: int = 5
    gate_target: float = 0.5
    gate_gain: float = 0.02
    gate_drop: float = 0.15
    pace: tuple[Pace, ...] = ()

    ewma_fast_span: int = 3
    ewma_slow_span: int = 10
    enable_trend: bool = True
    trend_margin_cross: float = 0.05
    trend_min_samples: int = 4
    adaptive_threshold: bool = False
    adaptive_margin_drop: float = 0.15
    percentile_window: int = 0
    percentile_floor: float = 0.25

    alert_cooldown_turns: int = 0
    circuit_breaker_max_notices: int = 5
    circuit_breaker_window_s: float = 600.0
    observe_only: bool = False
    capture_eval_cases: bool = False

    turn_idle_s: float = 300.0
    max_turn_traces: int = 256
    max_open_turns: int = 64
    request_evals: bool = False
    session_metrics_each_turn: bool = False
    eval_deadline_s: float = 20.0
    eval_retry_backoff_s: float = 1.0
    eval_retry_attempts: int = 3
    score_wait_s: float = 2.0
    first_score_wait_s: float = 900.0
    unannounced_wait_s: float = 15.0
    eval_sample_every: int = 1
    session_min_eval_interval_s: float = 0.0
    session_ttl_s: float = 604_800.0

    @cached_property
    def ms(self) -> "Waits":
        """Every time setting in the core's unit."""
        return Waits(*(seconds(getattr(self, f"{name}_s")) for name in Waits._fields))

    def tier_metrics(self, tier: int) -> tuple[str, ...]:
        """Return the names of the metrics that *tier* (1, 2 or 3) asks for."""
        if tier == 1:
            return self.tier1_metrics
        return self.tier2_metrics if tier == 2 else self.tier3_metrics

    @cached_property
    def tiers(self) -> Mapping[str, int]:
        """Trace-lane metric -> tier. A metric in several tiers counts in the lowest; unnamed metrics are absent."""
        found = {OUTCOME_METRIC: 0}
        for tier in (1, 2, 3):
            for metric in self.tier_metrics(tier):
                found.setdefault(metric, tier)
        return found

    @cached_property
    def session_lane(self) -> frozenset[str]:
        """The metrics whose scores travel in the session lane; all others travel in the trace lane."""
        return SESSION_METRICS.union(self.session_metrics)

    @cached_property
    def gate(self) -> Gate:
        """The trajectory gate as these rules set it."""
        return Gate(self.gate_window, self.gate_target, self.gate_gain, self.gate_drop)

    def pace_for(self, metric: str, task: str | None) -> Pace | None:
        """Return the pace that a session of *task* is held to: the task's own, else the one for all; none: off."""
        if not self.pace:
            return None
        return self._paces.get((metric, task)) or self._paces.get((metric, None))

    @cached_property
    def _paces(self) -> Mapping[tuple[str, str | None], Pace]:
        return {(item.metric, item.task): item for item in self.pace}

    def threshold(self, metric: str, carried: float | None) -> float:
        """Return the pass line: the setting for the metric, else what the score carries, else the default."""
        line = self.thresholds.get(metric, carried)
        if line is not None:
            return line
        return 0.9 if metric == OUTCOME_METRIC else 0.5

    @cached_property
    def text(self) -> str:
        """The rules as canonical JSON: what a rules record holds."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that name these rules; reports and notices carry it."""
        return blake2b(self.text.encode(), digest_size=8).hexdigest()

    @classmethod
    def from_text(cls, text: str) -> "Rules":
        """Read what `text` wrote.

        Raises:
            ValueError: it holds a setting that this version does not know, so it cannot decide as its writer did.
        """
        found: dict[str, Any] = json.loads(text)
        unknown = found.keys() - {item.name for item in fields(cls)}
        if unknown:
            raise ValueError(f"rules written by a newer version: unknown {', '.join(sorted(unknown))}")
        values: dict[str, Any] = {name: tuple(held) if isinstance(held, list) else held for name, held in found.items()}
        values["pace"] = tuple(pace_of(item) for item in found.get("pace", ()))
        return cls(**values)
