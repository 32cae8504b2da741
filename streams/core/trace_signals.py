"""Which of several scores of a signal counts: a person's newest word, else the newest success of anyone else."""

from collections.abc import Mapping

from streams.core.eval_states import SignalValue, TraceSignals
from streams.core.model import Score, ScoreSource, ScoreStatus


def heard(known: TraceSignals | None, session_id: str, score: Score, offset: int, now: int) -> TraceSignals | None:
    """Return a trace's signals after a score of one of them; none when the score says nothing.

    offset, now: of the score's log record; scores are heard in log order.
    """
    if score.trace_id is None or score.value is None or score.status is not ScoreStatus.SUCCESS:
        return None
    values = {value.name: value for value in known.values} if known else {}
    value = values.get(score.name) or SignalValue(score.name)
    if score.source is ScoreSource.ANNOTATION:
        values[score.name] = value._replace(annotated=score.value)
    else:
        values[score.name] = value._replace(scored=score.value)
    place = known.place if known else offset
    return TraceSignals(session_id, score.trace_id, place, tuple(values.values()), now)


def counting(signals: TraceSignals) -> Mapping[str, float]:
    """Return the value of each signal that counts."""
    found: dict[str, float] = {}
    for name, annotated, scored in signals.values:
        value = scored if annotated is None else annotated
        if value is not None:
            found[name] = value
    return found
