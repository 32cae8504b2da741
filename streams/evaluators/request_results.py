"""What follows from scores, beside themselves: what is remembered of them, and what is said of requests and limits."""

from streams.agents.outbox import EvalOutput
from streams.core.eval_requests import Answer, is_of_ladder
from streams.core.eval_states import RequestState
from streams.core.ids import digest
from streams.core.model import EvalRequest, JournalEntry, JournalKind, ScoreTarget
from streams.core.run_targets import Filters
from streams.core.runs import EvalRun, PartHandled, RunStatus
from streams.evaluators.metrics import METRICS
from streams.evaluators.scorer import Scored


def answer_of(scored: Scored) -> Answer:
    """Return what a score is remembered as."""
    usage = scored.verdict.usage
    return Answer(
        scored.target.number,
        scored.verdict.value is None,
        scored.evals,
        usage.input_tokens,
        usage.output_tokens,
        usage.calls,
        usage.cost,
    )


def word_of(state: RequestState, now: int) -> EvalOutput:
    """Return the word that a request is answered: to its run, or the run itself where the ladder asked."""
    request = state.request
    if not is_of_ladder(request):
        by_session = METRICS[request.metrics[0]].run_target is ScoreTarget.SESSION
        return PartHandled(
            run_id=request.run_id,
            session_id=request.session_id,
            part=request.part,
            evaluated=1 if by_session else len(request.trace_ids),
            failed=state.failed,
            input_tokens=state.input_tokens,
            output_tokens=state.output_tokens,
            judge_calls=state.judge_calls,
            cost=state.cost,
        )
    count = len(request.trace_ids) or 1
    chosen = Filters(trace_ids=request.trace_ids) if request.trace_ids else Filters(session_ids=(request.session_id,))
    return EvalRun(
        run_id=request.run_id,
        project=request.project,
        name=f"tier {request.tier} of turn {request.turn_id}" if request.tier else f"session at turn {request.turn_id}",
        target=ScoreTarget.TRACE if request.trace_ids else ScoreTarget.SESSION,
        metrics=request.metrics,
        created_at=request.requested_at,
        filters=chosen,
        turn_id=request.turn_id,
        status=RunStatus.COMPLETED,
        total_targets=count,
        evaluated_count=count,
        failed_count=state.failed,
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
        judge_calls=state.judge_calls,
        cost=state.cost,
        completed_at=now,
    )


def limit_met(request: EvalRequest, scored: Scored, now: int) -> JournalEntry:
    """Return the journal entry of the first score that a limit refused."""
    owner = request.session_id if is_of_ladder(request) else request.run_id
    return JournalEntry(
        journal_id=digest("limit", owner, scored.refused),
        kind=JournalKind.SKIP,
        reason=scored.refused,
        session_id=request.session_id,
        project=request.project,
        turn_id=request.turn_id or None,
        trace_id=scored.target.trace_id,
        metric=scored.target.metric,
        detail=f"{scored.verdict.reason}; further scores are FAILED",
        time=now,
    )
