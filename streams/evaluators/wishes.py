"""Whether a run or a monitor can be as it is asked for: whatever is wrong is said before anything is created."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar

from streams.core.model import ScoreTarget
from streams.core.monitors import Monitor
from streams.core.run_targets import check_filters, check_sampling
from streams.core.runs import EvalRun
from streams.core.text import MAX_ID_BYTES, cut
from streams.errors import BadRun
from streams.evaluators.cadence import check_cadence
from streams.evaluators.metrics import METRICS, check_metrics
from streams.evaluators.session_metrics import check_weights

TRACE_METRICS: Final = frozenset(name for name, metric in METRICS.items() if metric.target is ScoreTarget.TRACE)
"""Those that score one trace: a run over sessions that asks for one scores each trace of them."""

Wanted = TypeVar("Wanted", EvalRun, Monitor)


def checked(wanted: Wanted) -> Wanted:
    """Return what is asked for as it is kept: metrics once each, the cadence without needless spaces.

    Raises:
        BadRun: it cannot be; the message says what is wrong and what is possible.
    """
    _check_text("project", wanted.project, least=1)
    _check_text("name", wanted.name, least=0)
    check_filters(wanted.filters, wanted.target)
    check_sampling(wanted.sampling_rate)
    check_weights(wanted.signal_weights)
    check_thresholds(wanted.thresholds)
    if isinstance(wanted, Monitor):
        metrics = check_metrics(wanted.metrics, wanted.target)
        return replace(wanted, metrics=metrics, cadence=check_cadence(wanted.cadence))
    if wanted.retry_of is None:
        return replace(wanted, metrics=check_metrics(wanted.metrics, wanted.target))
    # The ladder asks for metrics of traces and of sessions together, and so does who asks for the same again.
    _check_known(wanted.metrics)
    return wanted


def check_thresholds(thresholds: Mapping[str, float]) -> None:
    """See that a run can draw its pass lines like this.

    Raises:
        BadRun: one is for no metric, or outside [0, 1].
    """
    _check_known(thresholds)
    for name, threshold in thresholds.items():
        if not 0.0 <= threshold <= 1.0:
            raise BadRun(f"the threshold of {name} is {threshold}, expected a number from 0 to 1")


def _check_known(metrics: Mapping[str, float] | tuple[str, ...]) -> None:
    for name in metrics:
        if name not in METRICS:
            raise BadRun(f"there is no metric {name!r}; there are {', '.join(METRICS)}")


def _check_text(field: str, text: str, least: int) -> None:
    if len(text) < least or not text.isprintable() or cut(text, MAX_ID_BYTES) != text:
        raise BadRun(f"the {field} {text[:40]!r} is not {least} to {MAX_ID_BYTES} bytes without control characters")
