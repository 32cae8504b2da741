"""The settings that decide, see core/rules.py: changing one of them changes the rules hash."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr, model_validator

from streams.core.pace import Pace
from streams.core.rules import Rules
from streams.pace_files import read_pace
from streams.setting_types import Names, Seconds, Share, Thresholds, names


class DetectionSettings(BaseModel):
    """Part of the settings: what detection does. Their defaults are those of the rules."""

    tier1_metrics: Annotated[Names, Field(min_length=1)] = Field(
        Rules.tier1_metrics, description="metrics asked for on every new trace of a turn"
    )
    tier2_metrics: Names = Field(
        Rules.tier2_metrics, description="metrics asked for on a turn's last trace after the gate fired"
    )
    tier3_metrics: Names = Field(Rules.tier3_metrics, description="metrics that explain a tier-2 breach")
    session_metrics: Names = Field(Rules.session_metrics, description="metrics of whole sessions: the session lane")
    thresholds: Thresholds = Field(default_factory=dict, description="pass line per metric, over what a score carries")
    enable_tier3: bool = Field(Rules.enable_tier3, description="ask for tier 3 when a tier-2 score breached")
    tier2_always: bool = Field(
        Rules.tier2_always, description="judge tier 2 on every turn, whether the gate fired or not"
    )
    evaluated_statuses: Annotated[
        tuple[Literal["PENDING", "RUNNING", "COMPLETED", "ERROR"], ...], BeforeValidator(names), Field(min_length=1)
    ] = Field(Rules.evaluated_statuses, description="trace statuses that make a trace evaluated")  # type: ignore[arg-type]
    gate_window: int = Field(
        Rules.gate_window, ge=1, le=1_000_000, description="traces without a gain that make a stall"
    )
    gate_target: Share = Field(Rules.gate_target, description="a peak at or above this never stalls")
    gate_gain: Share = Field(Rules.gate_gain, description="how far a value must exceed the peak to count as a gain")
    gate_drop: Share = Field(
        Rules.gate_drop, description="how far under the peak a value must lie to be a regression; 1 turns it off"
    )
    pace_file: Path | None = Field(
        None,
        description="file of pace lines, as `tgate calibrate --pace` writes it: a peak that stays below its line; none: off",
    )
    ewma_fast_span: int = Field(
        Rules.ewma_fast_span, ge=1, le=100_000, description="span of the fast average, in scores"
    )
    ewma_slow_span: int = Field(
        Rules.ewma_slow_span, ge=1, le=100_000, description="span of the slow average, in scores"
    )
    enable_trend: bool = Field(Rules.enable_trend, description="trend: the fast average fell below the slow one")
    trend_margin_cross: Share = Field(Rules.trend_margin_cross, description="by how much it must have fallen")
    trend_min_samples: int = Field(
        Rules.trend_min_samples, ge=1, le=100_000, description="scores a session detector needs before it speaks"
    )
    adaptive_threshold: bool = Field(
        Rules.adaptive_threshold, description="relative: a value far under the slow average"
    )
    adaptive_margin_drop: Share = Field(Rules.adaptive_margin_drop, description="how far under the slow average")
    percentile_window: int = Field(
        Rules.percentile_window,
        ge=0,
        le=500,
        description="scores the percentile detector looks back on; 0 turns it off",
    )
    percentile_floor: Share = Field(Rules.percentile_floor, description="the quantile that a value must lie below")
    alert_cooldown_turns: int = Field(
        Rules.alert_cooldown_turns,
        ge=0,
        le=1_000_000,
        description="turns before an unchanged problem is posted again; 0: never before recovery",
    )
    circuit_breaker_max_notices: int = Field(
        Rules.circuit_breaker_max_notices,
        ge=0,
        le=1000,
        description="notices of a project within the window before a human is asked; 0 turns the breaker off",
    )
    circuit_breaker_window_s: Annotated[float, Field(gt=0, le=31_536_000)] = Field(
        Rules.circuit_breaker_window_s, description="the breaker's window"
    )
    observe_only: bool = Field(
        Rules.observe_only, description="shadow mode: evaluate and journal everything, post nothing"
    )
    capture_eval_cases: bool = Field(
        Rules.capture_eval_cases, description="keep a replayable case of each posted breach"
    )
    turn_idle_s: Annotated[float, Field(gt=0, le=31_536_000)] = Field(
        Rules.turn_idle_s, description="an open turn closes after this long without a trace"
    )
    max_turn_traces: int = Field(Rules.max_turn_traces, ge=1, le=1024, description="traces at which a turn closes")
    max_open_turns: int = Field(
        Rules.max_open_turns,
        ge=1,
        le=64,
        description="closed turns that may wait before the oldest is decided with what it has",
    )
    request_evals: bool = Field(
        Rules.request_evals, description="ask evaluators for scores; off: scores come from elsewhere"
    )
    session_metrics_each_turn: bool = Field(
        Rules.session_metrics_each_turn, description="ask evaluators for the session metrics at the end of each turn"
    )
    eval_deadline_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        Rules.eval_deadline_s, description="how long a request may stay unanswered"
    )
    eval_retry_backoff_s: Seconds = Field(
        Rules.eval_retry_backoff_s, description="pause before a repeat, times the attempt"
    )
    eval_retry_attempts: int = Field(
        Rules.eval_retry_attempts, ge=1, le=100, description="requests made in all for a turn and tier"
    )
    score_wait_s: Seconds = Field(
        Rules.score_wait_s,
        description="how long a turn waits for missing scores after its closing and its latest score",
    )
    first_score_wait_s: Seconds = Field(
        Rules.first_score_wait_s, description="how long a turn waits for its first score"
    )
    unannounced_wait_s: Seconds = Field(
        Rules.unannounced_wait_s,
        description="how long a score waits for its trace before it stands for it; 0 for users who publish no traces",
    )
    eval_sample_every: int = Field(
        Rules.eval_sample_every, ge=1, le=1_000_000, description="evaluate every n-th turn of a session"
    )
    session_min_eval_interval_s: Seconds = Field(
        Rules.session_min_eval_interval_s, description="least time between two evaluated turns of a session"
    )
    session_ttl_s: Annotated[float, Field(gt=0, le=315_360_000)] = Field(
        Rules.session_ttl_s, description="a session idle for longer is forgotten"
    )

    _pace: tuple[Pace, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        """Read the named files once: what they hold is part of the rules."""
        if self.pace_file is not None:
            self._pace = read_pace(self.pace_file)
        return self

    @property
    def pace(self) -> tuple[Pace, ...]:
        """What `pace_file` holds."""
        return self._pace
