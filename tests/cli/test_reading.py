"""notices, needs-human, reports, settled, journal, cases, session and breaker: what they show of what is published."""

import json
import time

from streams import tables
from streams.core.breaker import BreakerState, Held
from streams.core.gate import GateState
from streams.core.model import (
    BreakerReset,
    Decision,
    JournalKind,
    Outcome,
    ReportScore,
    Score,
    ScoreStatus,
    Severity,
    Trace,
    TraceStatus,
)
from streams.core.notices import NoticeState
from streams.core.state import PendingTrace, SessionState, Turn, TurnTrace
from streams.engine import Out, partition_for
from streams.topics import BREAKER_STATES, NOTICE_CANDIDATES, NOTICES, SESSION_STATES
from streams.wire import Wire, encode_state
from tests.cli import records
from tests.cli.running import PARTITIONS, Topics


def _ids(output: str) -> list[str]:
    return [json.loads(line)["notice_id"] for line in output.splitlines()]


def _state(topics: Topics, role: str, name: str, state: object) -> Out:
    partition = partition_for(name.encode(), PARTITIONS)
    return Out(topics.settings.topic_names[role], partition, tables.state_key(name), encode_state(state))


def test_each_notice_is_shown_once_in_the_order_of_time(topics: Topics) -> None:
    first, second = records.notice("n1"), records.notice("n2", session_id="s2", time=records.notice().time + 1000)
    topics.put([second, first, first, second])
    result = topics.run("notices")
    lines = result.stdout.splitlines()
    assert (result.exit_code, len(lines)) == (0, 2)
    assert "trend" in lines[0]
    assert "shop  s1  task_completion 0.2 on trace t5: stalled" in lines[0]
    assert "shop  s2" in lines[1]


def test_notices_for_programs_and_by_choice(topics: Topics) -> None:
    old, new = 1_767_603_600_000, int(time.time() * 1000)
    topics.put(
        [
            records.notice("a", time=old),
            records.notice("b", time=new, severity=Severity.BREACH),
            records.notice("c", time=new + 1, session_id="s2"),
            records.notice("d", time=new + 2, project="other"),
        ]
    )

    def ids(*options: str) -> list[str]:
        return _ids(topics.run("notices", "--json", *options).stdout)

    assert ids() == ["a", "b", "c", "d"]
    assert ids("--last", "2") == ["c", "d"]
    assert sorted(ids("--from-start")) == ["a", "b", "c", "d"]
    assert sorted(ids("--since", "1h")) == ["b", "c", "d"]
    assert ids("--session", "s2") == ["c"]
    assert ids("--project", "other") == ["d"]
    assert ids("--severity", "breach", "--severity", "relative") == ["b"]
    assert ids("--session", "nobody") == []


def test_an_empty_topic_is_said_on_stderr_only(topics: Topics) -> None:
    result = topics.run("notices", "--json")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing there that fits\n")


def test_untrusted_text_reaches_the_terminal_as_text(topics: Topics) -> None:
    topics.put([records.notice(summary="\x1b[2J[bold]hi[/bold] \u202eevil\nnext", project="\x07p")])
    shown = topics.run("notices").stdout
    assert shown.count("\n") == 1
    assert "[bold]hi[/bold]" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_what_cannot_be_read_is_reported_and_left_out(topics: Topics) -> None:
    topics.put([records.notice()], Out(topics.settings.topic_names[NOTICES], 0, b"s1", b"\x01rubbish"))
    result = topics.run("notices", "--json")
    assert _ids(result.stdout) == ["n1"]
    assert f"left out {topics.settings.topic_names[NOTICES]}-0 offset 0: " in result.stderr


def test_the_other_outputs_have_their_lines(topics: Topics) -> None:
    quiet = records.report(2, severity=None, signatures=(), decision=Decision.QUIET)
    topics.put([records.report(1), quiet, records.settled(1), records.settled(2, Outcome.SUPPRESSED)])
    topics.put([records.entry(JournalKind.LATE), records.entry(JournalKind.RECOVERY), records.needs_human()])
    topics.put([records.case("breach:a"), records.case("breach:b")])
    assert "turn 1: task_completion 0.2 stall  posted new" in topics.run("reports").stdout
    assert "turn 2" in topics.run("reports", "--session", "s1", "--last", "1").stdout
    assert [json.loads(line)["turn_number"] for line in topics.run("reports", "--json").stdout.splitlines()] == [1, 2]
    assert "s1/t2 (trend)" in topics.run("settled", "--outcome", "suppressed").stdout
    assert topics.run("journal", "--kind", "late").stdout.count("\n") == 1
    assert "6 notices within 600 s" in topics.run("needs-human", "--project", "shop").stdout
    assert "c-breach:b" in topics.run("cases", "list", "--signature", "breach:b").stdout
    assert topics.run("cases", "list", "--signature", "breach:b").stdout.count("\n") == 1


def test_a_session_with_its_waits_gates_and_decisions(topics: Topics) -> None:
    now = int(time.time() * 1000)
    scored = Score("i", "t3", "task_completion", 0.3, ScoreStatus.SUCCESS)
    closed = Turn((TurnTrace("t3", 1, (scored,)),), now, closed_at=now, scored_at=now, number=3, closing_trace="t3")
    state = SessionState(
        "s1",
        "shop",
        turns=(closed, Turn((TurnTrace("t4", 2),), now)),
        pending=(PendingTrace("t9", now, None, (scored,)),),
        gates={"task_completion": GateState(0.25, 2, 7)},
        trace_notices=NoticeState(("stall:task_completion",)),
        turn_count=3,
        last_activity=now,
    )
    quiet = records.report(2, decision=Decision.UNCHANGED)
    topics.put([records.report(1), quiet, records.settled(1)], _state(topics, SESSION_STATES, "s1", state))
    shown = topics.run("session", "show", "s1").stdout
    for said in (
        "open problem stall:task_completion",
        "turn 3 (1 trace) waits for tier 1: coherence   until ",
        "open turn (1 trace) waits for a trace that ends the turn   until ",
        "trace t9 has scores but was not announced",
        "2 of 5",
        "posted: it has a problem that the turn before did not have",
        "no notice: the problem is known already",
    ):
        assert said in shown
    answer = json.loads(topics.run("session", "show", "s1", "--json").stdout)
    assert answer["state"]["gates"]["task_completion"] == {"peak": 0.25, "traces_since_gain": 2, "seen": 7}
    assert [wait["reason"] for wait in answer["waits"]] == ["scores", "end_of_turn", "announcement"]
    assert answer["waits"][0]["missing"] == ["coherence"]
    assert answer["outcomes"] == {"s1/t1": "posted"}


def test_a_trace_that_failed_is_said_to_be_left_out_and_why(topics: Topics) -> None:
    ended, begun = (
        PendingTrace(name, 1, Trace(name, "shop", status, 1), (Score(name, name, "quality", 0.5),))
        for name, status in (("t1", TraceStatus.ERROR), ("t2", TraceStatus.RUNNING))
    )
    topics.put([], _state(topics, SESSION_STATES, "s1", SessionState("s1", "shop", pending=(ended, begun))))
    shown = topics.run("session", "show", "s1").stdout
    assert "trace t1 ended with ERROR and is not evaluated, for evaluated_statuses is COMPLETED" in shown
    assert "trace t2 is announced as RUNNING and not completed" in shown
    answer = json.loads(topics.run("session", "show", "s1", "--json").stdout)
    assert [(wait["reason"], wait["status"]) for wait in answer["waits"]] == [
        ("not_evaluated", "ERROR"),
        ("completion", "RUNNING"),
    ]


def test_scores_that_no_tier_names_are_said_to_be_of_no_use(topics: Topics) -> None:
    other = ReportScore("style", None, "t1", 0.4, ScoreStatus.SUCCESS, 0.5)
    turn = Turn((TurnTrace("t3", 1, (Score("i", "t3", "quality", 0.3),)),), 1, closed_at=1, scored_at=1, number=3)
    judged = Score("j", "t3", "coherence", 0.3)
    turn = turn._replace(traces=(*turn.traces, TurnTrace("t4", 2, (judged,))))
    state = SessionState("s1", "shop", turns=(turn,))
    topics.put([records.report(1, scores=(records.STALL, other))], _state(topics, SESSION_STATES, "s1", state))
    shown = topics.run("session", "show", "s1").stdout
    assert "shown and never judged, for no tier of the rules names them\n  style, quality " in shown
    assert json.loads(topics.run("session", "show", "s1", "--json").stdout)["unwatched"] == ["style", "quality"]


def test_the_state_that_counts_is_the_last_one(topics: Topics) -> None:
    key, name = tables.state_key("s1"), topics.settings.topic_names[SESSION_STATES]
    partition = partition_for(b"s1", PARTITIONS)
    topics.put([], *(_state(topics, SESSION_STATES, "s1", SessionState("s1", turn_count=n)) for n in (1, 2)))
    assert "turns closed 2" in topics.run("session", "show", "s1").stdout
    topics.put([], Out(name, partition, key, None))
    assert topics.run("session", "show", "s1").exit_code == 1


def test_an_unknown_session_is_a_sentence(topics: Topics) -> None:
    result = topics.run("session", "show", "nobody")
    assert result.exit_code == 1
    assert "error: nothing is known of session 'nobody'" in result.stderr


def test_breakers_are_shown_as_they_stand_now(topics: Topics) -> None:
    now = int(time.time() * 1000)
    fresh = BreakerState((Held(now, "s1", ("stall:m",)), Held(now, "s2", ("stall:m",))), tripped=True)
    stale = BreakerState((Held(now - 3_600_000, "s3", ()),), tripped=True)
    topics.put([], _state(topics, BREAKER_STATES, "fresh", fresh), _state(topics, BREAKER_STATES, "stale", stale))
    lines = topics.run("breaker", "show").stdout.splitlines()
    assert any("fresh" in line and "tripped" in line and "2 of 5" in line for line in lines)
    assert any("stale" in line and "closed" in line and "0 of 5" in line for line in lines)
    (row,) = map(json.loads, topics.run("breaker", "show", "--project", "fresh", "--json").stdout.splitlines())
    assert (row["project"], row["tripped"], row["held"]) == ("fresh", True, 2)


def test_a_reset_of_a_project_that_nothing_is_known_of_is_refused(topics: Topics) -> None:
    result = topics.run("breaker", "reset", "shopp")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: nothing is known of project 'shopp'" in result.stderr
    assert "tgate breaker show" in result.stderr
    assert topics.records(NOTICE_CANDIDATES) == []


def test_a_reset_is_a_record_on_the_candidates_log(topics: Topics) -> None:
    topics.put([], _state(topics, BREAKER_STATES, "shop", BreakerState()))
    result = topics.run("breaker", "reset", "shop", "--reason", "looked at it")
    assert result.exit_code == 0
    (record,) = topics.records(NOTICE_CANDIDATES)
    assert (record.key, record.partition) == (b"shop", partition_for(b"shop", PARTITIONS))
    reset = Wire().read_candidate(record.value)
    assert isinstance(reset, BreakerReset)
    assert (reset.project, reset.reason) == ("shop", "looked at it")
