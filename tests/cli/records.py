"""Records as the stages publish them, for a test to change what it is about."""

from dataclasses import replace
from typing import Any

from streams.core.model import (
    Condition,
    Decision,
    EvalCase,
    JournalEntry,
    JournalKind,
    Lane,
    NeedsHuman,
    Notice,
    Outcome,
    Position,
    Report,
    ReportScore,
    ScoreStatus,
    Severity,
    TurnSettled,
)

STALL = ReportScore(
    "task_completion", 1, "t5", 0.2, ScoreStatus.SUCCESS, 0.5, (Condition.STALL,), peak=0.25, traces_since_gain=5
)


def notice(notice_id: str = "n1", **changes: Any) -> Notice:
    made = Notice(
        notice_id=notice_id,
        project="shop",
        session_id="s1",
        turn_id="s1/t5",
        lane=Lane.TRACE,
        severity=Severity.TREND,
        signatures=("stall:task_completion",),
        scores=(STALL,),
        flagged_traces=("t5",),
        values=(("t5", "task_completion", 0.2),),
        summary="task_completion 0.2 on trace t5: stalled",
        time=1_767_603_600_000,
        shadow=False,
        rules_hash="0" * 16,
    )
    return replace(made, **changes)


def report(turn: int = 1, **changes: Any) -> Report:
    made = Report(
        session_id="s1",
        project="shop",
        lane=Lane.TRACE,
        turn_id=f"s1/t{turn}",
        turn_number=turn,
        decided_at=1_767_603_600_000 + turn,
        position=Position(0, turn),
        trace_ids=(f"t{turn}",),
        scores=(STALL,),
        signatures=("stall:task_completion",),
        severity=Severity.TREND,
        decision=Decision.POSTED_NEW,
        gates=(),
        flagged_traces=(),
        summary="stalled",
        rules_hash="0" * 16,
    )
    return made._replace(**changes)


def settled(turn: int = 1, outcome: Outcome = Outcome.POSTED) -> TurnSettled:
    return TurnSettled(f"x{turn}", "s1", "shop", Lane.TRACE, f"s1/t{turn}", outcome, "trend", None, 1_767_603_600_000)


def entry(kind: JournalKind, **changes: Any) -> JournalEntry:
    made = JournalEntry(f"j-{kind}", kind, "because", "s1", "shop", None, None, None, "", 1_767_603_600_000)
    return made._replace(**changes)


def needs_human() -> NeedsHuman:
    return NeedsHuman("h1", "shop", "s1", "s1/t5", 6, 600_000, ("s1",), (), "6 notices within 600 s", 1_767_603_600_000)


def case(signature: str) -> EvalCase:
    return EvalCase(f"c-{signature}", "shop", "s1", "s1/t5", (signature,), (), None, 1_767_603_600_000)
