"""Scores of whole sessions: detectors in log order, reports run by run."""

import pytest

from streams.core.model import Candidate, Lane
from streams.core.notices import NoticeState
from tests.core.scenario import FAILED, PENDING, Story, brief, found, of

RELIABILITY, CONSISTENCY = "agent_reliability", "agent_consistency"


def quiet(turn_id: str) -> list[tuple]:
    return [("report", turn_id, "quiet"), ("settled", turn_id, "none", "quiet")]


def test_a_run_is_decided_when_all_session_metrics_are_there():
    story = Story()
    assert story.score(RELIABILITY, 0.8, eval_run_id="r") == ()
    assert brief(story.score(CONSISTENCY, 0.9, eval_run_id="r")) == quiet("r")
    (report,) = story.reports
    assert (report.lane, report.turn_number, report.trace_ids) == (Lane.SESSION, 0, ())
    assert found(report) == [(RELIABILITY, None, 0.8, ()), (CONSISTENCY, None, 0.9, ())]
    assert [score.tier for score in report.scores] == [0, 0]


def test_a_run_is_decided_two_seconds_after_its_first_score():
    story = Story(session_metrics=(RELIABILITY, CONSISTENCY, "politeness"))
    story.score(RELIABILITY, 0.8, eval_run_id="r", at=0)
    story.score(CONSISTENCY, 0.8, eval_run_id="r", at=1.5)
    assert story.tick(1.999) == ()
    assert brief(story.tick(2)) == quiet("r")


def test_a_score_later_than_that_is_a_report_of_its_own():
    story = Story()
    story.score(RELIABILITY, 0.8, eval_run_id="r", at=0)
    story.tick(2)
    assert brief(story.score(CONSISTENCY, 0.9, eval_run_id="r", score_id="c1")) == quiet("c1")


def test_a_score_without_run_is_a_report_of_its_own():
    assert brief(Story().score(RELIABILITY, 0.8, score_id="r1")) == quiet("r1")


def test_runs_stand_apart():
    story = Story()
    story.score(RELIABILITY, 0.8, eval_run_id="one")
    story.score(RELIABILITY, 0.8, eval_run_id="two")
    assert brief(story.score(CONSISTENCY, 0.9, eval_run_id="two")) == quiet("two")
    assert brief(story.score(CONSISTENCY, 0.9, eval_run_id="one")) == quiet("one")


def test_repeated_score_ids_are_ignored():
    story = Story()
    story.score(RELIABILITY, 0.1, score_id="x")
    before = story.state
    assert story.score(RELIABILITY, 0.1, score_id="x") == ()
    assert story.state == before._replace(offset=1)


def test_the_last_64_score_ids_are_remembered():
    story = Story()
    for number in range(65):
        story.score(RELIABILITY, 0.8, score_id=f"x{number}")
    assert story.score(RELIABILITY, 0.8, score_id="x1") == ()
    assert brief(story.score(RELIABILITY, 0.8, score_id="x0")) == quiet("x0")
    assert len(story.state.seen_scores) == 64


def test_a_pending_score_is_nothing_yet_and_its_id_may_come_again():
    story = Story()
    assert story.score(RELIABILITY, None, score_id="x", status=PENDING) == ()
    assert brief(story.score(RELIABILITY, 0.8, score_id="x")) == quiet("x")


def test_a_failed_score_resolves_without_folding():
    story = Story()
    story.score(RELIABILITY, None, eval_run_id="r", status=FAILED)
    assert brief(story.score(CONSISTENCY, 0.9, eval_run_id="r")) == quiet("r")
    assert list(story.state.detectors) == [CONSISTENCY]


def test_a_report_of_failures_only_changes_nothing():
    story = Story()
    story.score(RELIABILITY, 0.1, score_id="a")
    assert brief(story.score(RELIABILITY, None, score_id="b")) == [
        ("report", "b", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "b", "none", "pending"),
    ]
    assert story.state.session_notices == NoticeState(("breach:agent_reliability",), 0)


def test_a_value_below_its_threshold_is_a_breach():
    story = Story(thresholds={CONSISTENCY: 0.8})
    outputs = story.score(RELIABILITY, 0.49, eval_run_id="r") + story.score(CONSISTENCY, 0.79, eval_run_id="r")
    assert brief(outputs) == [
        ("report", "r", "posted_new"),
        ("candidate", "breach", "breach:agent_consistency", "breach:agent_reliability"),
    ]
    assert story.reports[0].summary == (
        "agent_reliability 0.49: below its threshold 0.5; agent_consistency 0.79: below its threshold 0.8"
    )


def test_a_falling_average_is_a_trend():
    story = Story()
    for number, value in enumerate((0.95, 0.95, 0.95)):
        story.score(RELIABILITY, value, score_id=f"x{number}")
    assert brief(story.score(RELIABILITY, 0.7, score_id="x3")) == [
        ("report", "x3", "posted_new"),
        ("candidate", "trend", "trend:agent_reliability"),
    ]
    assert story.reports[-1].summary == ("agent_reliability 0.7: its recent average falls behind the long one 0.9045")


def test_relative_outranks_trend_and_percentile_corroborates():
    story = Story(adaptive_threshold=True, percentile_window=4)
    for number, value in enumerate((0.95, 0.95, 0.95)):
        story.score(RELIABILITY, value, score_id=f"x{number}")
    assert brief(story.score(RELIABILITY, 0.7, score_id="x3"))[1] == (
        "candidate",
        "relative",
        "percentile:agent_reliability",
        "relative:agent_reliability",
        "trend:agent_reliability",
    )
    assert story.reports[-1].summary == (
        "agent_reliability 0.7: far under its average 0.9045, "
        "its recent average falls behind the long one 0.9045, among the lowest of its recent values"
    )


def test_percentile_alone_is_a_trend():
    story = Story(percentile_window=4, enable_trend=False)
    for number, value in enumerate((0.95, 0.95, 0.95, 0.9)):
        story.score(RELIABILITY, value, score_id=f"x{number}")
    assert brief(story.outputs)[-1] == ("candidate", "trend", "percentile:agent_reliability")
    assert story.reports[-1].scores[0].average == pytest.approx(0.95 - 0.05 * 2 / 11)


def test_scores_fold_in_log_order_whatever_their_runs():
    story = Story()
    for number, value in enumerate((0.95, 0.95, 0.95)):
        story.score(RELIABILITY, value, eval_run_id=f"r{number}", at=0)
    story.score(RELIABILITY, 0.7, eval_run_id="r3", at=0)
    story.tick(2)
    assert [report.signatures for report in story.reports] == [(), (), (), ("trend:agent_reliability",)]


def test_two_metrics_reported_apart_do_not_flap():
    story = Story()
    decisions = []
    for number in range(3):
        story.score(RELIABILITY, 0.1, score_id=f"r{number}")
        story.score(CONSISTENCY, 0.1, score_id=f"c{number}")
        decisions += [report.decision.value for report in story.reports[-2:]]
    assert decisions == ["posted_new", "posted_new", "unchanged", "unchanged", "unchanged", "unchanged"]
    assert [candidate.notice.signatures for candidate in of(Candidate, story.outputs)] == [
        ("breach:agent_reliability",),
        ("breach:agent_consistency",),
    ]


def test_a_metric_that_is_well_leaves_the_others_problem_open():
    story = Story()
    story.score(RELIABILITY, 0.1, score_id="a")
    assert brief(story.score(CONSISTENCY, 0.9, score_id="b")) == [
        ("report", "b", "unchanged"),
        ("settled", "b", "none", "unchanged"),
    ]
    assert brief(story.score(RELIABILITY, 0.9, score_id="c")) == [
        ("report", "c", "recovered"),
        ("journal", "recovery", "recovered"),
        ("settled", "c", "none", "recovered"),
    ]


def test_every_report_counts_for_the_cooldown():
    story = Story(alert_cooldown_turns=1)
    story.score(RELIABILITY, 0.1, score_id="a")
    story.score(CONSISTENCY, 0.9, score_id="b")
    assert brief(story.score(RELIABILITY, 0.1, score_id="c"))[0] == ("report", "c", "posted_again")


def test_the_lanes_have_notice_states_of_their_own():
    story = Story()
    story.score(RELIABILITY, 0.1, score_id="a")
    assert brief(story.turn("t", 0.6, at=1))[0] == ("report", "s/t", "quiet")
    assert brief(story.score(RELIABILITY, 0.1, score_id="b"))[0] == ("report", "b", "unchanged")


@pytest.mark.parametrize("metric", [RELIABILITY, CONSISTENCY, "politeness"])
def test_which_metrics_travel_in_this_lane(metric):
    story = Story(session_metrics=("politeness",))
    story.score(metric, 0.9, "t1", score_id="x")
    assert [(report.lane, report.turn_id) for report in story.reports] == [(Lane.SESSION, "x")]
    assert found(story.reports[0]) == [(metric, None, 0.9, ())]


def test_flagged_traces_are_those_the_scores_name():
    story = Story()
    story.score(RELIABILITY, 0.1, score_id="a", flagged_traces=("t2", "t1", "t2"))
    assert of(Candidate, story.outputs)[0].notice.flagged_traces == ("t2", "t1")


def test_a_detector_switched_on_later_knows_the_average_that_was_there():
    story = Story()
    for number in range(4):
        story.score(RELIABILITY, 0.95, score_id=f"x{number}")
    story.switch(adaptive_threshold=True)
    assert brief(story.score(RELIABILITY, 0.7, score_id="y"))[1] == (
        "candidate",
        "relative",
        "relative:agent_reliability",
        "trend:agent_reliability",
    )


def test_a_run_of_too_many_scores_is_decided():
    story = Story()
    story.score(RELIABILITY, 0.9, eval_run_id="other")
    for number in range(31):
        assert story.score(RELIABILITY, 0.9, eval_run_id="long", score_id=f"x{number}") == ()
    assert brief(story.score(RELIABILITY, 0.9, eval_run_id="long", score_id="x31")) == [
        ("journal", "overflow", "session_runs"),
        *quiet("long"),
    ]


def test_sixteen_runs_may_be_open():
    story = Story()
    for number in range(16):
        assert story.score(RELIABILITY, 0.9, eval_run_id=f"r{number}") == ()
    assert brief(story.score(RELIABILITY, 0.9, eval_run_id="r16")) == [
        ("journal", "overflow", "session_runs"),
        *quiet("r0"),
    ]
