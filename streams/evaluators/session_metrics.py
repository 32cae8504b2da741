"""Session metrics: agent_reliability and agent_consistency, by arithmetic on the signals of a session's traces.

A signal's risk is 1 - signal. Reliability says how badly the worst traces went; consistency how unsure the agent was
of itself, which counts for more where the other signals are poor as well. A signal that is missing is left out, and so
is a trace without any. Here a session is taken whole; `session_signals` follows one trace by trace.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from streams.errors import BadRun
from streams.evaluators.evaluation import Verdict, scored
from streams.evaluators.signals import clamp01

Values = Mapping[str, float]
Terms = Callable[[Values, Values], Values]

DEFAULT_WEIGHTS: Final[Values] = {
    "confidence": 1.0,
    "loop_detection": 1.0,
    "tool_correctness": 0.8,
    "coherence": 1.0,
}
MAX_WEIGHT: Final = 1000.0
TOP_SHARE: Final = 0.15
"""The share of a session's traces, the worst ones, that makes its reliability."""
WORST_SHARE: Final = 0.1
"""How much of the risk is that of the worst trace alone."""
FLAGGED: Final = 0.5
"""A trace that is worse than this is flagged."""
SHOWN: Final = 64
"""Traces that metadata show: the worst ones, in the session's order. Detection reads as many flagged ones of a score."""

_RISK_NAMES: Final = {
    "confidence": "confidence_risk",
    "loop_detection": "loop_risk",
    "tool_correctness": "tool_risk",
    "coherence": "coherence_risk",
}


class Step(NamedTuple):
    """One trace as a session metric sees it. Steps sort by how bad they are; of equal ones the later comes first."""

    badness: float
    """What the metric adds up, >= 0 where no weight is negative: R of reliability, u of consistency."""
    from_last: int
    """Minus the trace's place in the session."""
    trace_id: str
    signals: Values


def weights_used(weights: Values | None) -> Values:
    """Return the default weights with *weights* in the place of those that it names."""
    return {**DEFAULT_WEIGHTS, **(weights or {})}


def check_weights(weights: Values) -> None:
    """See that a run can weigh signals like this.

    Raises:
        BadRun: a weight is for no signal, negative, too large, or not a number.
    """
    for name, weight in weights.items():
        if name not in DEFAULT_WEIGHTS:
            raise BadRun(f"{name!r} is no signal; these have weights: {', '.join(DEFAULT_WEIGHTS)}")
        if not 0.0 <= weight <= MAX_WEIGHT:
            raise BadRun(f"the weight of {name} is {weight}, expected a number from 0 to {MAX_WEIGHT:g}")


def agent_reliability(traces: Sequence[str], signals: Mapping[str, Values], weights: Values | None = None) -> Verdict:
    """How well the worst traces of a session went.

    traces: the session's trace ids in order.
    signals: each trace's signals by name, in [0, 1]; what is no signal, or not a number, is left out.
    weights: by signal, in the place of the default ones.
    """
    used = weights_used(weights)
    found = [reliability_step(place, name, signals.get(name, {}), used) for place, name in enumerate(traces)]
    steps = sorted(step for step in found if step)
    flagged = sum(step.badness > FLAGGED for step in steps)
    return reliability(steps[-worst_needed(len(steps)) :], len(steps), len(traces), flagged, used)


def agent_consistency(traces: Sequence[str], signals: Mapping[str, Values], weights: Values | None = None) -> Verdict:
    """How sure of itself the agent was all through a session; arguments as for agent_reliability."""
    used = weights_used(weights)
    found = [consistency_step(place, name, signals.get(name, {}), used) for place, name in enumerate(traces)]
    steps = sorted(step for step in found if step)
    squares = math.fsum(step.badness * step.badness for step in steps)
    return consistency(steps[-SHOWN:], len(steps), len(traces), squares, used)


def reliability_step(place: int, trace_id: str, signals: Values, weights: Values) -> Step | None:
    """Return a trace with its R; none without a signal."""
    terms = _reliability_terms(signals, weights)
    return Step(terms["step_risk"], -place, trace_id, signals) if terms else None


def consistency_step(place: int, trace_id: str, signals: Values, weights: Values) -> Step | None:
    """Return a trace with its u; none without confidence."""
    terms = _consistency_terms(signals, weights)
    return Step(terms["weighted_uncertainty"], -place, trace_id, signals) if terms else None


def worst_needed(usable: int) -> int:
    """Return how many of a session's worst steps reliability is made from and shown with."""
    return max(SHOWN, _top_count(usable))


def reliability(worst: Sequence[Step], usable: int, total: int, flagged: int, weights: Values) -> Verdict:
    """Return the reliability of a session from its worst steps, the worst of them last.

    worst: `worst_needed(usable)` steps, or all.
    usable, total: traces with a signal, and all.
    flagged: usable traces that are worse than FLAGGED.
    """
    if not usable:
        return scored(1.0, "no trace of the session has a signal: nothing speaks against it")
    top = worst[-_top_count(usable) :]
    mean, largest = math.fsum(step.badness for step in top) / len(top), top[-1].badness
    raw = (1 - WORST_SHARE) * mean + WORST_SHARE * largest
    aggregation = {
        "method": "max_compose_top_k",
        "top_k_percentile": TOP_SHARE,
        "ensemble_weight": WORST_SHARE,
        "mean_top_k_risk": round(mean, 4),
        "max_risk": round(largest, 4),
    }
    terms = {"raw_risk": round(raw, 4), "aggregation": aggregation}
    metadata = _working(worst, usable, total, weights, _reliability_terms) | terms
    worst_ones = f"the worst {len(top)} of {usable} traces have a mean risk of {mean:.2f}"
    return scored(clamp01(1 - raw), f"{worst_ones}, the worst one {largest:.2f}; {flagged} flagged", metadata)


def consistency(worst: Sequence[Step], usable: int, total: int, squares: float, weights: Values) -> Verdict:
    """Return the consistency of a session: arguments as for reliability; *squares* is the sum of u^2 over all steps."""
    if not usable:
        return scored(1.0, "no trace of the session has a confidence: nothing speaks against it")
    raw = math.sqrt(squares / usable)
    aggregation = {"method": "weighted_rms", "rms_value": round(raw, 4)}
    terms = {"raw_instability": round(raw, 4), "aggregation": aggregation}
    metadata = _working(worst, usable, total, weights, _consistency_terms) | terms
    reason = f"uncertainty over {usable} traces is {raw:.2f} (root mean square), at most {worst[-1].badness:.2f}"
    return scored(clamp01(1 - raw), reason, metadata)


def _working(worst: Sequence[Step], usable: int, total: int, weights: Values, terms: Terms) -> dict[str, Any]:
    """Return what metadata show of either metric."""
    shown = sorted(worst[-SHOWN:], key=lambda step: -step.from_last)
    return {
        "total_traces_in_session": total,
        "traces_evaluated": usable,
        "signal_weights": dict(weights),
        "per_trace_signals": {step.trace_id: _rounded(terms(step.signals, weights)) for step in shown},
        "flagged_traces": list(dict.fromkeys(step.trace_id for step in shown if step.badness > FLAGGED)),
    }


def _reliability_terms(signals: Values, weights: Values) -> Values:
    """Return the risks of a trace and R, the largest of them once weighed; nothing without a signal."""
    risks = _risks(signals)
    if not risks:
        return {}
    return _named(risks) | {"step_risk": max(weights[name] * risk for name, risk in risks.items())}


def _consistency_terms(signals: Values, weights: Values) -> Values:
    """Return the risks of a trace and u, its doubt raised by the other weighed risks; nothing without confidence."""
    risks = _risks(signals)
    if "confidence" not in risks:
        return {}
    penalty = sum(weights[name] * risk for name, risk in risks.items() if name != "confidence")
    doubt = (1 + penalty) * weights["confidence"] * risks["confidence"]
    return _named(risks) | {"situational_penalty": penalty, "weighted_uncertainty": doubt}


def _risks(signals: Values) -> dict[str, float]:
    present = {name: signals[name] for name in DEFAULT_WEIGHTS if name in signals}
    return {name: 1 - value for name, value in present.items() if not math.isnan(value)}


def _named(risks: Values) -> dict[str, float]:
    return {_RISK_NAMES[name]: risk for name, risk in risks.items()}


def _rounded(terms: Values) -> dict[str, float]:
    return {name: round(value, 4) for name, value in terms.items()}


def _top_count(usable: int) -> int:
    return max(1, math.ceil(TOP_SHARE * usable))
