"""Which of several scores for one metric stands, and where a score belongs."""

from streams.core.model import PENDING, JournalKind, Score, ScoreSource, ScoreStatus
from streams.core.state import MAX_TRACE_SCORES, Draft, weight


def find(scores: tuple[Score, ...], metric: str) -> Score | None:
    """Return the score of *metric*, if any."""
    for score in scores:
        if score.name == metric:
            return score
    return None


def replaces(new: Score, old: Score) -> bool:
    """Whether *new* takes the place of *old*: what is pending yields, a success heals a failure, a person overrides."""
    if new.status is PENDING:
        return old.status is PENDING
    if new.source is ScoreSource.ANNOTATION or old.status is PENDING:
        return True
    return new.status is ScoreStatus.SUCCESS and old.status is ScoreStatus.FAILED


def admit(draft: Draft, scores: tuple[Score, ...], new: Score) -> tuple[Score, ...]:
    """Return *scores* with *new* among them, or as they were when it was refused, which is journaled."""
    old = find(scores, new.name)
    if old is None:
        if len(scores) < MAX_TRACE_SCORES:
            draft.held_bytes += weight(new)
            return (*scores, new)
        draft.journal(JournalKind.OVERFLOW, "trace_scores", trace_id=new.trace_id, metric=new.name)
    elif replaces(new, old):
        draft.held_bytes += weight(new) - weight(old)
        return tuple(new if score is old else score for score in scores)
    else:
        detail = f"score {new.score_id} came after {old.score_id}"
        draft.journal(JournalKind.SUPERSEDED, "already_resolved", trace_id=new.trace_id, metric=new.name, detail=detail)
    return scores


def late(draft: Draft, score: Score, reason: str) -> None:
    """Journal a score that can no longer count; the first of a session says so, for a warning."""
    detail = "" if draft.warned_late else "first late score of this session"
    draft.warned_late = True
    draft.journal(JournalKind.LATE, reason, trace_id=score.trace_id, metric=score.name, detail=detail)
