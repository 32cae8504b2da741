"""The judge by rules: its facts, its values, and what it never does."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.evaluators.calls import Fault, calls_of, judged, tells_failure
from streams.evaluators.evaluation import MAX_REASON, Subject
from streams.evaluators.metrics import METRICS, MetricKind
from streams.evaluators.rules_judge import EXIT_CODE, OUTCOMES, TESTS, RulesJudge, judge

SEEN = ("tool_correctness", "argument_correctness", "step_efficiency", "confidence")


def span(name, arguments="{}", output='"ok"', *, status="OK", error=None, kind="TOOL", started_at=None):
    return {
        "name": name,
        "kind": kind,
        "input": arguments,
        "output": output,
        "status": status,
        "error": error,
        "started_at": started_at,
    }


def trace(*spans, status="COMPLETED", output='"done"', metadata="{}", question='"do it"'):
    return {"spans": list(spans), "status": status, "input": question, "output": output, "metadata": metadata}


def good(number):
    return span("search", json.dumps({"page": number}), json.dumps(f"page {number}"))


BAD = span("book", '{"seat": 1}', '"no such seat"', status="ERROR", error="no such seat")


def value(metric, *spans, history=(), **fields):
    return judge(metric, Subject(trace(*spans, **fields), history)).value


def faults(*spans, before=()):
    return [call.fault for call in judged(calls_of(trace(*spans)), calls_of(trace(*before)))]


# What spans say


@pytest.mark.parametrize(
    "output",
    [
        "Error: user not found",
        "  ERROR : no",
        "Error executing tool search",
        "An error occurred while running the tool. Please try again.",
        "Traceback (most recent call last):\n",
        {"error": "no such user"},
        {"isError": True, "content": [{"type": "text", "text": "no"}]},
        {"ok": False},
        {"success": False, "data": 1},
        {"status": "error"},
        {"output": {"content": "Error: no", "type": "tool"}},
        {"result": {"status": "FAILED"}},
    ],
)
def test_outputs_that_say_they_are_errors(output):
    assert tells_failure(output)
    assert faults(span("a", output=json.dumps(output))) == [Fault.FAILED]


@pytest.mark.parametrize(
    "output",
    [
        "error rates fell by 3 %",
        "no errors found",
        "errors: 0",
        {"error": None},
        {"errors": 3},
        {"error": False},
        {"success": True, "status": "ok"},
        {"content": "the log says Error: x"},
        ["Error: quoted in a list"],
        0,
        {"output": {"output": {"output": {"output": {"output": "Error: too deep"}}}}},
    ],
)
def test_outputs_that_speak_of_errors_only(output):
    assert not tells_failure(output)
    assert faults(span("a", output=json.dumps(output))) == [None]


@pytest.mark.parametrize("changes", [{"status": "ERROR"}, {"error": "timeout"}])
def test_spans_that_say_they_failed(changes):
    assert faults(span("a") | changes) == [Fault.FAILED]


def test_a_repeat_is_the_same_call_with_the_same_result():
    first, again = span("a", '{"x": 1, "y": 2}', '{"n":1}'), span("a", '{"y":2,"x":1}', '{"n": 1}')
    assert faults(first, again) == [None, Fault.REPEATED]
    assert faults(first, good(1), again) == [None, None, Fault.REPEATED]
    assert faults(first, again | {"output": "2"}) == [None, None]
    assert faults(first, again | {"input": "{}"}) == [None, None]
    assert faults(first, again | {"name": "b"}) == [None, None]
    assert faults(again, before=[first]) == [Fault.REPEATED]


def test_ping_pong_is_two_calls_in_turns_that_bring_nothing_new():
    up, down = span("up", output="null"), span("down", output='""')
    wanted = [None, *[Fault.EMPTY] * 3, *[Fault.PING_PONG] * 2]
    assert faults(good(1), up, down, up, down, up) == wanted
    assert faults(good(1), up, up, up, up, up) == [None, *[Fault.EMPTY] * 5]
    read, write = span("read", output='"same"'), span("write", output='"written"')
    assert faults(read, write, read, write) == [None, None, Fault.REPEATED, Fault.PING_PONG]
    assert faults(read, write, read, write | {"output": "null"})[3] is Fault.PING_PONG
    pages = [span("next", output=f'"page {number}"') for number in range(3)]
    assert faults(pages[0], read, pages[1], read, pages[2]) == [None, None, None, Fault.PING_PONG, None]


def test_outputs_and_arguments_that_are_not_recorded_are_no_facts():
    bare = [span(name, None, None) for name in "ababab"]
    assert faults(*bare) == [None] * 6
    assert faults(*[call | {"output": '"same"'} for call in bare]) == [None] * 6
    assert faults(*bare, good(1)) == [*[Fault.EMPTY] * 3, *[Fault.PING_PONG] * 3, None]


def test_calls_stand_in_the_order_in_which_they_started():
    late, early = span("late", started_at=2), span("early", started_at=1)
    assert [call.name for call in calls_of(trace(late, early))] == ["early", "late"]
    assert [call.name for call in calls_of(trace(late, early | {"started_at": None}))] == ["late", "early"]
    other = [span(kind, kind=kind) for kind in ("LLM", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING", "OTHER")]
    assert [call.name for call in calls_of(trace(*other))] == ["RETRIEVER"]


# What follows from it


def test_without_calls_nothing_speaks_against_a_finished_trace():
    assert [value(metric) for metric in SEEN] == [1.0] * 4


def test_ten_good_calls_are_perfect():
    assert [value(metric, *map(good, range(10))) for metric in SEEN] == [1.0] * 4


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([BAD], 1 / 2),
        ([good(1), BAD], 2 / 3),
        ([BAD, span("book")], 2 / 2.5),
        ([BAD] * 3, 1 / 5),
        ([BAD, BAD, good(1), BAD, BAD], 2 / 6),
        ([good(1)] * 3, 2 / 3),
        ([good(1)] * 6, 2 / 4.5),
        ([good(1), span("note", output="null")], 3 / 3.25),
    ],
)
def test_tool_correctness(spans, expected):
    assert value("tool_correctness", *spans) == round(expected, 4)


def test_a_failure_streak_goes_on_from_trace_to_trace():
    history = [trace(BAD), trace(BAD)]
    assert value("tool_correctness", BAD, history=history) == round(1 / 3, 4)
    assert value("tool_correctness", BAD, history=[*history, trace(good(1))]) == 0.5


@pytest.mark.parametrize(
    ("spans", "expected"),
    [([BAD], 0.0), ([good(1), BAD, good(2), good(2)], 0.75), ([BAD, BAD, good(1)], 1 / 3)],
)
def test_argument_correctness_is_the_share_of_calls_that_were_taken(spans, expected):
    assert value("argument_correctness", *spans) == round(expected, 4)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([good(1), BAD], 2 / 3),
        ([good(1)] * 6, 2 / 7),
        ([BAD] * 3, 1 / 4),
        ([good(1), span("note", output="null")], 3 / 3.25),
    ],
)
def test_step_efficiency(spans, expected):
    assert value("step_efficiency", *spans) == round(expected, 4)


@pytest.mark.parametrize(
    ("spans", "fields", "expected"),
    [
        ([], {"status": "ERROR"}, 0.2),
        ([], {"status": "RUNNING"}, 0.4),
        ([], {"output": None}, 0.5),
        ([], {"output": '" "', "status": "ERROR"}, 0.1),
        ([], {"output": None, "question": None}, 1.0),
        ([good(1), BAD], {}, 0.5 * 0.75),
        ([BAD, good(1)], {}, 0.75),
        ([good(1), good(1)], {}, 0.75),
        ([good(1), BAD, good(1)], {}, 0.5 * (1 - 1 / 3)),
        ([*[BAD] * 4, good(1)], {}, 2 / 4 * (1 - 0.5 * 4 / 5)),
    ],
)
def test_confidence_is_what_the_signs_of_a_bad_end_leave(spans, fields, expected):
    assert value("confidence", *spans, **fields) == round(expected, 4)


@pytest.mark.parametrize(
    ("fields", "expected", "outcome"),
    [
        ({"metadata": '{"outcome_correct": true, "reward": 0}'}, 1.0, "metadata.outcome_correct"),
        ({"metadata": '{"reward": 0.25}'}, 0.25, "metadata.reward"),
        ({"metadata": '{"success": false}'}, 0.0, "metadata.success"),
        ({"metadata": '{"passed": true}'}, 1.0, "metadata.passed"),
        ({"metadata": '{"resolved": false}'}, 0.0, "metadata.resolved"),
        ({"metadata": '{"exit_code": 0}'}, 1.0, "metadata.exit_code"),
        ({"metadata": '{"exit_code": -9}'}, 0.0, "metadata.exit_code"),
        ({"metadata": '{"tests_passed": 3, "tests_failed": 1}'}, 0.75, "metadata.tests_passed and tests_failed"),
        ({"output": '{"exit_code": 1}'}, 0.0, "output.exit_code"),
        ({"output": '{"reward": 1}', "metadata": '{"reward": 7}'}, 1.0, "output.reward"),
    ],
)
def test_task_completion_is_the_outcome_that_the_trace_carries(fields, expected, outcome):
    verdict = judge("task_completion", Subject(trace(**fields)))
    assert (verdict.value, verdict.metadata["facts"]) == (expected, {"outcome": outcome})
    assert verdict.reason.startswith("rules: the trace's ")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"output": '{"success": true, "passed": true, "outcome_correct": true}'},
        {"metadata": '{"reward": -1, "success": "yes", "exit_code": true, "tests_passed": 0, "tests_failed": 0}'},
        {"metadata": '{"reward": NaN}', "output": "[1]"},
        {"metadata": '{"tests_passed": 3}', "output": None},
    ],
)
def test_without_an_outcome_no_task_is_complete(fields):
    verdict = judge("task_completion", Subject(trace(**fields)))
    assert verdict.value is None
    assert "needs a model" in verdict.reason


# What never happens

NAMES = st.sampled_from(["search", "book", "error \x1b[31m"])
JSON = st.sampled_from(["null", '""', "{}", '"ok"', '"Error: no"', "[1]", "no JSON", '{"error": 1}']) | st.none()
SPANS = st.builds(
    span,
    NAMES,
    JSON,
    JSON,
    status=st.sampled_from(["OK", "UNSET", "UNSET", "ERROR"]),
    error=st.sampled_from([None, None, "late"]),
    kind=st.sampled_from(["TOOL", "TOOL", "RETRIEVER", "LLM"]),
)
FEW_CALLS = st.builds(
    span, st.sampled_from("ab"), st.sampled_from(["{}", "[1]"]), st.sampled_from(['"x"', '"y"', '""'])
)
TRACES = st.builds(
    trace,
    *[],
    status=st.sampled_from(["PENDING", "RUNNING", "COMPLETED", "ERROR"]),
    output=JSON,
    metadata=st.sampled_from(["{}", '{"reward": 0.5}', '{"exit_code": 3}', '{"reward": 1e999}']),
    question=JSON,
)
SUBJECTS = st.builds(
    lambda bare, spans, earlier: Subject(bare | {"spans": spans}, [trace(*earlier)]),
    TRACES,
    st.lists(SPANS, max_size=12),
    st.lists(SPANS, max_size=5),
)
JUDGED = [name for name, metric in METRICS.items() if metric.kind is MetricKind.JUDGE]


@given(SUBJECTS)
def test_verdicts_are_in_range_labelled_and_the_same_again(subject):
    for metric in JUDGED:
        verdict = judge(metric, subject)
        assert verdict.value is None or 0.0 <= verdict.value <= 1.0
        assert (verdict.value is None) == (metric.startswith("plan_") or "needs a model" in verdict.reason)
        assert verdict.reason.startswith("rules: ")
        assert verdict.reason.isprintable()
        assert len(verdict.reason.encode()) <= MAX_REASON
        assert verdict.metadata["judge"] == "rules"
        json.dumps(verdict.metadata, allow_nan=False)
        assert judge(metric, subject) == verdict
        assert asyncio.run(RulesJudge().judge(metric, subject, model="gpt")) == verdict


@given(SUBJECTS, st.integers(0, 11))
def test_one_more_failure_never_raises_a_value(subject, place):
    spans = list(subject.trace["spans"])
    if place < len(spans):
        spans[place] = spans[place] | {"status": "ERROR"}
    else:
        spans.append(BAD)
    worse = replace(subject, trace=subject.trace | {"spans": spans})
    for metric in SEEN:
        assert judge(metric, worse).value <= judge(metric, subject).value


@given(st.lists(FEW_CALLS, min_size=1, max_size=12), st.data())
def test_one_more_repeat_never_raises_a_value(spans, data):
    known = [place for place, call in enumerate(judged(calls_of(trace(*spans)))) if call.call.result]
    again = [*spans, spans[data.draw(st.sampled_from(known))]] if known else spans
    for metric in SEEN:
        assert value(metric, *again) <= value(metric, *spans)


@given(SUBJECTS)
def test_a_worse_end_never_raises_confidence(subject):
    for changes in ({"status": "ERROR"}, {"output": "null"}):
        worse = replace(subject, trace=subject.trace | {"status": "COMPLETED"} | changes)
        better = replace(subject, trace=subject.trace | {"status": "COMPLETED"})
        assert judge("confidence", worse).value <= judge("confidence", better).value


def test_facts_are_shown():
    verdict = judge(
        "tool_correctness", Subject(trace(BAD, BAD, BAD, span("book"), good(1), good(1), span("n", output='""')))
    )
    assert verdict.metadata == {
        "judge": "rules",
        "rules_version": 1,
        "facts": {
            "calls": 7,
            "failed": 3,
            "ping_pong": 0,
            "repeated": 1,
            "empty_output": 1,
            "failed_but_worked_later": 3,
            "longest_failure_streak": 3,
            "trace_status": "COMPLETED",
            "unanswered": False,
        },
    }
    assert verdict.reason == (
        "rules: 7 calls, 3 failed, 1 repeated, 1 empty output (failed: book); 3 good calls against a weight of 2.75"
    )


def test_the_page_names_every_outcome_and_metric():
    page = (Path(__file__).parents[2] / "docs" / "rules-judge.md").read_text()
    outcomes = page.partition("## Outcomes")[2]
    for name in (*OUTCOMES, EXIT_CODE, *TESTS):
        assert f"`{name}`" in outcomes
    for name in JUDGED:
        assert f"`{name}`" in page
