"""Gate, detectors, dedup and breaker against every vector, to the last bit."""

import pytest

from streams.core.breaker import BreakerState, admit
from streams.core.detectors import session_detectors
from streams.core.gate import Gate
from streams.core.model import (
    Candidate,
    Condition,
    Decision,
    Lane,
    Notice,
    Position,
    ReportScore,
    ScoreStatus,
    Severity,
)
from streams.core.notices import NoticeState, decide, severity
from streams.core.rules import Rules
from tests.core.vectors import cases


@pytest.mark.parametrize("case", cases("gate"), ids=range(len(cases("gate"))))
def test_gate(case):
    gate = Gate(**{name.removeprefix("gate_"): value for name, value in case["params"].items()})
    state = gate.start()
    found = []
    for value in case["values"]:
        state, fired = gate.step(state, value)
        found.append([state.peak, state.traces_since_gain, Condition.STALL in fired, Condition.REGRESSION in fired])
        assert set(fired) <= {Condition.STALL, Condition.REGRESSION}
    assert found == case["expect"]


@pytest.mark.parametrize("case", cases("session_detectors"), ids=range(len(cases("session_detectors"))))
def test_session_detectors(case):
    detectors = session_detectors(Rules(**case["params"]), case["threshold"])
    states = {condition: detector.start() for condition, detector, _ in detectors}
    found = []
    for value in case["values"]:
        fired = []
        for condition, detector, watched in detectors:
            states[condition], holds = detector.step(states[condition], value)
            if holds and watched:
                fired.append(condition)
        fast, slow = states[Condition.TREND].values
        score = ReportScore("m", 0, None, value, ScoreStatus.SUCCESS, case["threshold"], tuple(fired))
        found.append(
            {
                "fast": fast,
                "slow": slow,
                "count": states[Condition.TREND].seen,
                "conditions": fired,
                "severity": severity([score]),
            }
        )
    assert found == case["expect"]


@pytest.mark.parametrize("case", cases("dedup"), ids=range(len(cases("dedup"))))
def test_one_notice_per_problem(case):
    state = NoticeState()
    found = []
    for signatures in case["turns"]:
        state, decision = decide(state, tuple(signatures), case["alert_cooldown_turns"])
        found.append([decision in {Decision.POSTED_NEW, Decision.POSTED_AGAIN}, decision is Decision.RECOVERED])
    assert found == case["expect_post_recovered"]


@pytest.mark.parametrize("case", cases("breaker"), ids=range(len(cases("breaker"))))
def test_breaker(case):
    notice = Notice(
        "n", "p", "s", "t", Lane.TRACE, Severity.TREND, ("stall:m",), (), (), (), "", 0, shadow=False, rules_hash=""
    )
    words = {"posted": "notice", "needs_human": "needs_human", "suppressed": "suppressed"}
    state = BreakerState()
    found = []
    for time in case["times"]:
        candidate = Candidate(
            notice, Position(0, 0), 0, case["max_notices"], case["window_s"], capture_case=False, input=None
        )
        state, outcome = admit(state, candidate, time)
        found.append(words[outcome])
    assert found == case["expect"]
