"""From a verdict to the score that is published."""

from collections.abc import Mapping
from typing import Any

import orjson

from streams.core.eval_requests import Target, score_id
from streams.core.model import EvalRequest, ScoreSource, ScoreStatus
from streams.errors import TooLarge
from streams.evaluators.evaluation import Verdict
from streams.evaluators.metrics import METRICS
from streams.wire import Wire


def score(request: EvalRequest, target: Target, verdict: Verdict, threshold: float, now: int) -> dict[str, Any]:
    """Return the fields of a score; *now*: when it was made, milliseconds since 1970, UTC."""
    metadata: dict[str, Any] = {**verdict.metadata, "threshold": threshold}
    if verdict.value is not None:
        metadata["success"] = verdict.value >= threshold
    return {
        "score_id": score_id(request, target),
        "session_id": request.session_id,
        "trace_id": target.trace_id,
        "target": METRICS[target.metric].target,
        "name": target.metric,
        "value": verdict.value,
        "source": ScoreSource.AUTOMATED,
        "status": ScoreStatus.SUCCESS if verdict.value is not None else ScoreStatus.FAILED,
        "reason": verdict.reason,
        "metadata": metadata,
        "eval_run_id": request.run_id,
        "created_at": now,
    }


def pass_line(request: EvalRequest, metric: str, thresholds: Mapping[str, float]) -> float:
    """Return a metric's threshold: the request's, else the setting, else the metric's own."""
    line = request.thresholds.get(metric, thresholds.get(metric))
    return METRICS[metric].threshold if line is None else line


def written(wire: Wire, fields: Mapping[str, Any]) -> bytes:
    """Return the value of a score's record; metadata that do not fit in are left out."""
    metadata = fields["metadata"]
    try:
        return wire.write_input("Score", {**fields, "metadata": orjson.dumps(metadata).decode()})
    except TooLarge:
        kept = {name: metadata[name] for name in ("threshold", "success") if name in metadata}
        return wire.write_input("Score", {**fields, "metadata": kept | {"metadata_too_large": True}})
