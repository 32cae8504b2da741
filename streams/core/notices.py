"""From a report's scores to a decision: signatures, severity, one notice per problem, cooldown, recovery."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from streams.core.model import Condition, Decision, ReportScore, Severity


class NoticeState(NamedTuple):
    """What a lane remembers of its last report; no signatures means no open problem."""

    signatures: tuple[str, ...] = ()
    cooldown: int = 0


NOTHING_OPEN: Final = NoticeState()
# By themselves, as most reports end here and Python 3.11 takes its time to find a member in an enum.
_QUIET: Final = Decision.QUIET


def signatures(scores: Iterable[ReportScore]) -> tuple[str, ...]:
    """Return the sorted `condition:metric` names found in *scores*."""
    return tuple(sorted({f"{condition}:{score.metric}" for score in scores for condition in score.conditions}))


def severity(scores: Iterable[ReportScore]) -> Severity | None:
    """Return `breach` before `relative` before `trend`, or none when no score has a condition."""
    found = {condition for score in scores for condition in score.conditions}
    if Condition.BREACH in found:
        return Severity.BREACH
    if Condition.RELATIVE in found:
        return Severity.RELATIVE
    return Severity.TREND if found else None


def decide(state: NoticeState, found: tuple[str, ...], cooldown_turns: int) -> tuple[NoticeState, Decision]:
    """Decide whether a report with the signatures *found* is worth a notice.

    Post what is new, or what has gone on through the whole cooldown; a cooldown of 0 turns means
    silence until the problem has gone.
    """
    if not found:
        return NOTHING_OPEN, Decision.RECOVERED if state.signatures else _QUIET
    if not set(found) <= set(state.signatures):
        return NoticeState(found, cooldown_turns), Decision.POSTED_NEW
    if found == state.signatures and cooldown_turns > 0 and state.cooldown <= 0:
        return NoticeState(found, cooldown_turns), Decision.POSTED_AGAIN
    return NoticeState(found, max(0, state.cooldown - 1)), Decision.UNCHANGED


def flagged_traces(scores: Iterable[ReportScore], named: Iterable[str]) -> tuple[str, ...]:
    """Return the traces that scores *named*, then those of alerting scores, first seen first, each once."""
    alerting = (score.trace_id for score in scores if score.conditions and score.trace_id is not None)
    return tuple(dict.fromkeys([*named, *alerting]))


def summary(scores: Iterable[ReportScore], gain: float, target: float) -> str:
    """Return one sentence that says what happened: values, peaks, how long without gain, which trace."""
    return "; ".join(_sentence(score, gain, target) for score in scores if score.conditions)


def _sentence(score: ReportScore, gain: float, target: float) -> str:
    parts = [text for condition in score.conditions if (text := _finding(condition, score, gain, target))]
    where = f" on trace {score.trace_id}" if score.trace_id is not None else ""
    return f"{score.metric} {_number(score.value)}{where}: {', '.join(parts)}"


def _finding(condition: Condition, score: ReportScore, gain: float, target: float) -> str:  # noqa: PLR0911 - one for each
    match condition:
        case Condition.BREACH:
            return f"below its threshold {_number(score.threshold)}"
        case Condition.STALL:
            return (
                f"stalled, {score.traces_since_gain} traces without a gain of {_number(gain)} "
                f"over the peak {_number(score.peak)} (target {_number(target)})"
            )
        case Condition.REGRESSION:
            return f"fell back from the peak {_number(score.peak)}"
        case Condition.PACE:
            return f"behind the pace, its peak {_number(score.peak)} stays below the line {_number(score.pace_line)}"
        case Condition.RELATIVE:
            return f"far under its average {_number(score.average)}"
        case Condition.TREND:
            return f"its recent average falls behind the long one {_number(score.average)}"
        case Condition.PERCENTILE:
            return "among the lowest of its recent values"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
