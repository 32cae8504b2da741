"""What evaluators are asked for a run: whole parts of one session each, exactly what failed on a retry, fair limits."""

import pytest

from streams.core.model import ScoreTarget, TraceStatus
from streams.core.run_plan import (
    NOTHING,
    PART_TRACES,
    FailedScore,
    Limits,
    Part,
    planned,
    planned_again,
    requests,
    target_count,
)
from streams.core.run_targets import Filters, TraceFacts
from streams.core.runs import EvalRun

LOOPS = ("loop_detection",)


def run(target=ScoreTarget.TRACE, metrics=("coherence",), **more):
    return EvalRun("r", "p", "", target, tuple(metrics), 77, **more)


def traces(session, count, **more):
    return [
        TraceFacts(f"{session}{number}", session, "p", 1_000 - number, TraceStatus.COMPLETED, **more)
        for number in range(count)
    ]


def test_a_run_over_traces_asks_in_parts_of_one_session():
    made = run()
    parts = planned(made, [*traces("a", PART_TRACES + 1), *traces("b", 2)], LOOPS)
    assert [(part.session_id, len(part.trace_ids)) for part in parts] == [("a", 16), ("a", 1), ("b", 2)]
    assert {part.metrics for part in parts} == {("coherence",)}
    asked = [trace_id for part in parts for trace_id in part.trace_ids]
    assert asked[:2] == ["a16", "a15"]
    assert len(set(asked)) == target_count(made, parts) == PART_TRACES + 3


def test_filters_and_sampling_choose_and_a_plan_made_twice_is_the_same():
    known = [*traces("a", 9, tags=("vip",)), *traces("b", 9)]
    made = run(filters=Filters(tags=("vip",)), sampling_rate=0.5)
    parts = planned(made, known, LOOPS)
    assert target_count(made, parts) == 4
    assert {part.session_id for part in parts} == {"a"}
    assert planned(made, reversed(known), LOOPS) == parts
    assert planned(run(sampling_rate=0.0), known, LOOPS) == ()
    assert planned(run(filters=Filters(user_id="u")), known, LOOPS) == ()


def test_a_run_over_sessions_asks_once_a_session():
    made = run(ScoreTarget.SESSION, ["agent_reliability"], filters=Filters(min_trace_count=2))
    parts = planned(made, [*traces("a", 3), *traces("b", 1), *traces("c", 2)], LOOPS)
    assert parts == (Part("a", (), ("agent_reliability",)), Part("c", (), ("agent_reliability",)))
    assert target_count(made, parts) == 2


def test_a_metric_of_traces_over_sessions_names_all_of_each_in_their_order():
    made = run(ScoreTarget.SESSION, ["loop_detection", "agent_consistency"])
    (part,) = planned(made, traces("a", 3), LOOPS)
    assert part == Part("a", ("a2", "a1", "a0"), ("loop_detection", "agent_consistency"))


def test_a_retry_asks_for_exactly_what_failed():
    failed = [
        FailedScore("s", "t2", "coherence"),
        FailedScore("s", "t1", "coherence"),
        FailedScore("s", "t1", "confidence"),
        FailedScore("s", "t3", "coherence"),
        FailedScore("s", "t1", "coherence"),
    ]
    made = run(metrics=["coherence", "confidence"], retry_of="x")
    parts = planned_again(made, failed)
    assert parts == (Part("s", ("t1",), ("coherence", "confidence")), Part("s", ("t2", "t3"), ("coherence",)))
    assert target_count(made, parts) == 3
    assert planned_again(made, reversed(failed)) == parts


def test_a_retry_over_sessions_is_one_request_a_session():
    failed = [
        FailedScore("s", None, "agent_reliability"),
        FailedScore("s", "t2", "loop_detection"),
        FailedScore("s", "t1", "loop_detection"),
        FailedScore("z", "t9", "loop_detection"),
    ]
    made = run(ScoreTarget.SESSION, ["agent_reliability", "loop_detection"], retry_of="x")
    parts = planned_again(made, failed)
    assert parts == (
        Part("s", ("t1", "t2"), ("agent_reliability", "loop_detection")),
        Part("z", ("t9",), ("loop_detection",)),
    )
    assert target_count(made, parts) == 2


def test_requests_carry_what_the_run_wants_and_belong_to_no_turn():
    made = run(model="big", signal_weights={"confidence": 0.1}, thresholds={"coherence": 0.9})
    asked = requests(made, planned(made, traces("a", 17), LOOPS), {"coherence"}, Limits())
    assert [(one.part, one.run_id, one.turn_id, one.tier, one.attempt) for one in asked] == [
        (0, "r", "", 0, 1),
        (1, "r", "", 0, 1),
    ]
    assert {(one.project, one.model, one.requested_at, one.log_offset) for one in asked} == {("p", "big", 77, -1)}
    assert (asked[0].signal_weights, asked[0].thresholds) == ({"confidence": 0.1}, {"coherence": 0.9})
    assert {(one.max_evals, one.max_tokens) for one in asked} == {(0, 0)}


@pytest.mark.parametrize(
    ("limits", "evals", "tokens"),
    [
        (Limits(33, 0), [32, 1, 0], [0, 0, 0]),
        (Limits(32, 3400), [32, NOTHING, 0], [3200, 200, 0]),
        (Limits(1, 1), [1, NOTHING, 0], [NOTHING, NOTHING, 0]),
        (Limits(9999, 34), [32, 2, 0], [32, 2, 0]),
    ],
)
def test_a_limit_is_shared_out_among_what_a_judge_is_asked_for(limits, evals, tokens):
    parts = [
        Part("a", tuple(f"t{number}" for number in range(16)), ("confidence", "coherence", "task_completion")),
        Part("a", ("t16",), ("confidence", "task_completion")),
        Part("a", ("t17",), ("coherence",)),
    ]
    asked = requests(run(), parts, {"confidence", "task_completion"}, limits)
    assert [one.max_evals for one in asked] == evals
    assert [one.max_tokens for one in asked] == tokens
