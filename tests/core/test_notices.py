"""One notice per problem, what a notice carries, and what shadow mode changes."""

from dataclasses import replace

from streams.core.model import Candidate, JournalEntry, Lane, Position, ReportScore, ScoreStatus
from streams.core.notices import NoticeState, decide
from tests.core.scenario import Story, brief, of

TIER2 = ("tool_correctness", "argument_correctness")
STALL = ("candidate", "trend", "stall:task_completion")
RECOVERY = ("journal", "recovery", "recovered")


def judged(**rules) -> Story:
    """Return a session that judges tool_correctness alone, on every turn."""
    return Story(tier1_metrics=(), tier2_metrics=("tool_correctness",), tier2_always=True, **rules)


def judge(story: Story, trace: str, value: float | None) -> list[tuple]:
    """Let a turn pass whose tool_correctness is *value*."""
    return brief(story.trace(trace) + story.score("tool_correctness", value, trace))


def stall(story: Story, trace: str, value: float = 0.3, **changes):
    """Let a turn pass that tier 2 does not confirm."""
    outputs = story.trace(trace, story.now + 1, **changes)
    for metric in TIER2:
        outputs += story.score(metric, 1.0, trace)
    return outputs + story.tier1(trace, value)


def test_a_problem_that_lasts_is_posted_once_until_it_has_gone():
    story = judged()
    assert judge(story, "a", 0.1)[1] == ("candidate", "breach", "breach:tool_correctness")
    assert judge(story, "b", 0.1) == [("report", "s/b", "unchanged"), ("settled", "s/b", "none", "unchanged")]
    assert judge(story, "c", 0.9) == [
        ("report", "s/c", "recovered"),
        RECOVERY,
        ("settled", "s/c", "none", "recovered"),
    ]
    assert judge(story, "d", 0.9) == [("report", "s/d", "quiet"), ("settled", "s/d", "none", "quiet")]
    assert judge(story, "e", 0.1)[0] == ("report", "s/e", "posted_new")


def test_a_problem_that_lasts_is_posted_again_after_the_cooldown():
    story = judged(alert_cooldown_turns=2)
    decisions = [judge(story, f"t{number}", 0.1)[0][2] for number in range(7)]
    assert decisions == [
        "posted_new",
        "unchanged",
        "unchanged",
        "posted_again",
        "unchanged",
        "unchanged",
        "posted_again",
    ]


def test_a_report_without_any_value_changes_nothing():
    story = judged()
    judge(story, "a", 0.1)
    assert judge(story, "b", None) == [
        ("report", "s/b", "pending"),
        ("journal", "pending", "no_score_has_a_value"),
        ("settled", "s/b", "none", "pending"),
    ]
    assert story.state.trace_notices == NoticeState(("breach:tool_correctness",), 0)
    assert judge(story, "c", 0.1)[0] == ("report", "s/c", "unchanged")


def test_a_stall_that_persists_is_posted_once_every_window():
    story = Story(gate_window=2)
    decisions = []
    for number in range(7):
        stall(story, f"t{number}")
        decisions.append(story.reports[-1].decision)
    assert decisions == ["quiet", "quiet", "posted_new", "recovered", "posted_new", "recovered", "posted_new"]


def test_fewer_of_the_same_signatures_are_no_news_even_after_the_cooldown():
    state, decision = decide(NoticeState(("a:m", "b:m"), 0), ("a:m",), 3)
    assert (state, decision) == (NoticeState(("a:m",), 0), "unchanged")


def test_in_shadow_all_is_decided_and_journaled_and_nothing_published():
    story = judged(observe_only=True)
    outputs = story.trace("a", 0) + story.score("tool_correctness", 0.1, "a")
    assert brief(outputs) == [
        ("report", "s/a", "shadow"),
        ("journal", "shadow", "observe_only"),
        ("settled", "s/a", "shadow", "shadow"),
    ]
    (entry,) = of(JournalEntry, outputs)
    assert entry.notice.shadow is True
    assert entry.notice.signatures == ("breach:tool_correctness",)
    assert entry.detail == entry.notice.summary == "tool_correctness 0.1 on trace a: below its threshold 0.5"


def test_shadow_keeps_the_notice_state():
    story = judged(observe_only=True)
    judge(story, "a", 0.1)
    assert judge(story, "b", 0.1)[0] == ("report", "s/b", "unchanged")
    rules = {"tier1_metrics": (), "tier2_metrics": ("tool_correctness",), "tier2_always": True}
    story.switch(**rules)
    assert judge(story, "c", 0.1)[0] == ("report", "s/c", "unchanged")
    assert judge(story, "d", 0.9)[1] == RECOVERY


def test_shadow_and_live_notices_are_the_same_but_for_the_mark():
    live, shadow = Story(gate_window=1), Story(gate_window=1, observe_only=True)
    for story in (live, shadow):
        stall(story, "a")
        stall(story, "b")
    (candidate,) = of(Candidate, live.outputs)
    (entry,) = of(JournalEntry, shadow.outputs)
    assert replace(candidate.notice, shadow=True, rules_hash=shadow.rules.hash) == entry.notice


def test_a_candidate_carries_what_the_breaker_needs():
    story = Story(
        gate_window=1,
        circuit_breaker_max_notices=7,
        circuit_breaker_window_s=1.5,
        capture_eval_cases=True,
    )
    stall(story, "a")
    stall(story, "b", input='"do it"')
    (candidate,) = of(Candidate, story.outputs)
    assert candidate.position == Position(0, story.offset)
    assert story.outputs[-1] is candidate
    assert (candidate.index, candidate.breaker_max_notices, candidate.breaker_window_ms) == (1, 7, 1500)
    assert (candidate.capture_case, candidate.input) == (True, '"do it"')


def test_a_notice_carries_its_evidence():
    story = Story(gate_window=1)
    stall(story, "a", 0.4)
    story.trace("b", 5)
    for metric in TIER2:
        story.score(metric, 0.2 if metric == TIER2[0] else 1.0, "b", reason="wrong tool", flagged_traces=("x", "b"))
    story.tier1("b", 0.1)
    (candidate,) = of(Candidate, story.outputs)
    notice = candidate.notice
    assert notice.notice_id == "409c2d770efa56719ae8b14e6505acf1"
    assert (notice.project, notice.session_id, notice.turn_id, notice.lane) == ("default", "s", "s/b", Lane.TRACE)
    assert notice.severity == "breach"
    assert notice.signatures == (
        "breach:tool_correctness",
        "regression:task_completion",
        "stall:task_completion",
    )
    assert notice.scores == (
        ReportScore(
            "task_completion", 1, "b", 0.1, ScoreStatus.SUCCESS, 0.5, ("stall", "regression"), "", 0.4, 1, None
        ),
        ReportScore("tool_correctness", 2, "b", 0.2, ScoreStatus.SUCCESS, 0.5, ("breach",), "wrong tool"),
    )
    assert notice.flagged_traces == ("x", "b")
    assert notice.values == (
        ("b", "task_completion", 0.1),
        ("b", "coherence", 0.9),
        ("b", "tool_correctness", 0.2),
        ("b", "argument_correctness", 1.0),
    )
    assert (notice.time, notice.shadow, notice.rules_hash) == (5000, False, story.rules.hash)


def test_the_sentence_of_a_stall():
    story = Story(gate_window=2)
    for number in range(3):
        stall(story, f"t{number}")
    assert story.reports[-1].summary == (
        "task_completion 0.3 on trace t2: stalled, 2 traces without a gain of 0.02 over the peak 0.3 (target 0.5)"
    )


def test_the_sentence_of_a_regression():
    story = Story()
    stall(story, "a", 0.8)
    stall(story, "b", 0.123456)
    assert story.reports[-1].summary == "task_completion 0.1235 on trace b: fell back from the peak 0.8"


def test_a_notices_id_depends_on_where_it_happened_and_nothing_else():
    def notice_id(first: float, second: float, session_id: str = "s", start: float = 0, **rules) -> str:
        story = Story(session_id, gate_window=1, **rules)
        story.now = start
        stall(story, "a", first)
        stall(story, "b", second)
        (candidate,) = of(Candidate, story.outputs)
        return candidate.notice.notice_id

    assert notice_id(0.4, 0.3) == notice_id(0.3, 0.1, start=77, gate_target=0.45, alert_cooldown_turns=4)
    assert notice_id(0.4, 0.3) != notice_id(0.4, 0.3, session_id="t")


def test_a_notices_id_depends_on_the_project():
    ids = set()
    for project in ("default", "shop"):
        story = Story(gate_window=1)
        stall(story, "a")
        stall(story, "b", project=project)
        ids |= {candidate.notice.notice_id for candidate in of(Candidate, story.outputs)}
    assert len(ids) == 2
