"""Random logs: a few sessions, traces and metrics that meet often, and a clock that sometimes stumbles."""

from hypothesis import strategies as st

from streams.core.model import ScoreStatus, TraceStatus
from streams.core.pace import Pace, Point
from tests.core.logbook import Log
from tests.core.scenario import ANNOTATION, FAILED, PENDING

SESSIONS = ("s", "t")
TRACES = tuple("abcdef")
METRICS = (
    "task_completion",
    "coherence",
    "tool_correctness",
    "argument_correctness",
    "plan_quality",
    "outcome_correct",
    "politeness",
)
SESSION_METRICS = ("agent_reliability", "agent_consistency")
VALUES = (0.0, 0.1, 0.3, 0.32, 0.5, 0.9, 1.0)
RULES = (
    {},
    {"gate_window": 1, "alert_cooldown_turns": 1},
    {"request_evals": True, "gate_window": 2},
    {"request_evals": True, "gate_window": 1, "enable_tier3": True, "eval_retry_attempts": 2},
    {"tier2_always": True, "enable_tier3": True, "unannounced_wait_s": 0},
    {"max_open_turns": 1, "max_turn_traces": 2, "session_min_eval_interval_s": 3},
    {"tier1_metrics": ("task_completion",), "session_metrics": ("agent_reliability",)},
    {"tier1_metrics": ("task_completion", "politeness"), "eval_sample_every": 2},
    {"pace": (Pace("task_completion", points=(Point(1, 0.2), Point(3, 0.4)), until=9, patience=2),)},
    {"observe_only": True, "percentile_window": 3, "adaptive_threshold": True, "trend_min_samples": 1},
)
rules = st.sampled_from(RULES)
steps = st.sampled_from((0, 0, 0, 0.5, 1, 2, 5, 20, 300, 900, -1))


@st.composite
def logs(draw, max_size: int = 60, switches: bool = True) -> Log:
    """Return a log of up to *max_size* records; score ids are unique, trace ids come again as updates."""
    log = Log(**draw(rules))
    kinds = ["trace", "trace", "score", "score", "score", "lane", "tick", *["rules"] * switches]
    for _ in range(draw(st.integers(0, max_size))):
        log.now = max(0, log.now + draw(steps))
        draw_record(draw, log, draw(st.sampled_from(kinds)))
    return log


def draw_record(draw, log: Log, kind: str) -> None:
    session_id = draw(st.sampled_from(SESSIONS))
    match kind:
        case "trace":
            changes = {
                "status": draw(st.sampled_from((*[TraceStatus.COMPLETED] * 4, TraceStatus.RUNNING))),
                "ends_turn": draw(st.booleans()),
                "turn_index": draw(st.sampled_from((None, None, 1, 2))),
                "started_at": round(1000 * max(0, log.now - draw(st.sampled_from((0, 0, 0, 2, 30))))),
            }
            log.trace(session_id, draw(st.sampled_from(TRACES)), **changes)
        case "score":
            metric = draw(st.sampled_from(METRICS))
            no_trace = metric == "outcome_correct" and draw(st.booleans())
            trace = None if no_trace else draw(st.sampled_from(TRACES))
            log.score(session_id, metric, **draw_value(draw), trace=trace, created_at=round(1000 * log.now))
        case "lane":
            run_id = draw(st.sampled_from((None, "r1", "r2")))
            log.score(session_id, draw(st.sampled_from(SESSION_METRICS)), **draw_value(draw), eval_run_id=run_id)
        case "tick":
            log.tick(max(0, log.now - draw(st.sampled_from((0, 0, 1)))), at=log.now)
        case _:
            log.rules(**draw(rules))


def draw_value(draw) -> dict:
    status = draw(st.sampled_from((*[ScoreStatus.SUCCESS] * 6, FAILED, PENDING)))
    value = draw(st.sampled_from(VALUES)) if status is ScoreStatus.SUCCESS else None
    source = ANNOTATION if draw(st.integers(0, 7)) == 0 else "AUTOMATED"
    return {"value": value, "status": status, "source": source}
