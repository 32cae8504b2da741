"""What holds for every session: arrival order does not matter, state stays small."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.log import LogFold
from streams.core.model import Position
from streams.core.session import next_due
from streams.core.state import SessionState, weight
from tests.core.logbook import Worker, fold_all
from tests.core.scenario import Story
from tests.core.strategies import METRICS, RULES, SESSIONS, VALUES, logs

relaxed = settings(max_examples=60, deadline=None)


def bounded(state: SessionState, max_open_turns: int) -> bool:
    """Whether the state keeps every bound."""
    traces = [trace for turn in state.turns for trace in turn.traces]
    return (
        len(state.evaluated) <= 128
        and len(state.seen_scores) <= 64
        and len(state.decided_runs) <= 64
        and len(traces) + len(state.pending) <= 1024
        and all(len(item.scores) <= 32 for item in (*traces, *state.pending, *state.turns))
        and all(len(run.scores) <= 32 for run in state.runs)
        and len(state.runs) <= 16
        and sum(turn.closed_at is not None for turn in state.turns) <= max_open_turns
        and sum(turn.closed_at is None for turn in state.turns) <= 1
        and state.held_bytes == held(state)
    )


def held(state: SessionState) -> int:
    """Return what everything undecided weighs, counted anew."""
    turns = sum(weight(item) for turn in state.turns for item in (*turn.traces, *turn.scores))
    runs = sum(weight(item.score) for run in state.runs for item in run.scores)
    return turns + runs + sum(weight(item) for item in state.pending)


@relaxed
@given(logs(max_size=120))
def test_the_bounds_hold_after_every_record(log):
    worker = Worker()
    for record in log.records:
        worker.run([record])
        for session_id in SESSIONS:
            state = worker.state(session_id)
            assert state is None or bounded(state, worker.fold.rules.max_open_turns)


@relaxed
@given(logs())
def test_the_index_of_waits_is_what_the_sessions_wait_for(log):
    fold: LogFold = fold_all(log.records).fold
    states = [state for session_id in SESSIONS if (state := fold.get(session_id))]
    due = [time for state in states if (time := next_due(state, fold.rules)) is not None]
    assert fold.next_due == min(due, default=None)


@relaxed
@given(logs())
def test_waiting_long_enough_decides_every_turn(log):
    worker = fold_all(log.records)
    for _ in range(12):
        worker.run([log.tick(log.now + 1000)])
    for session_id in SESSIONS:
        state = worker.state(session_id)
        assert state is None or (state.turns, state.runs) == ((), ())


def test_bounds_hold_for_sessions_that_only_pile_up():
    chance = Random(7)
    story = Story(max_open_turns=4)
    for number in range(4000):
        trace = f"t{chance.randrange(3000)}"
        if chance.random() < 0.4:
            story.trace(
                trace, number / 10, ends_turn=chance.random() < 0.01, status=chance.choice(["RUNNING", "COMPLETED"])
            )
        else:
            story.score(f"m{chance.randrange(50)}", 0.5, trace, at=number / 10)
        if number % 100 == 0:
            assert bounded(story.state, 4)


@st.composite
def turns(draw) -> tuple[dict, list[str], list[tuple], list[tuple]]:
    """Return rules, trace ids, and the scores of one turn in two orders; one score per trace and metric."""
    traces = [f"t{number}" for number in range(draw(st.integers(1, 4)))]
    places = [(metric, trace) for metric in METRICS for trace in traces] + [("outcome_correct", None)]
    chosen = draw(st.lists(st.sampled_from(places), unique=True, max_size=20))
    scores = [(*place, draw(st.sampled_from((None, *VALUES)))) for place in chosen]
    rules = {**draw(st.sampled_from(RULES)), "max_turn_traces": 256, "unannounced_wait_s": 15}
    return rules, traces, scores, draw(st.permutations(scores))


def told(rules: dict, traces: list[str], scores: list[tuple]) -> list:
    """Return the reports of a session with a past, whose last turn is scored in this order before it closes."""
    story = Story(**rules)
    story.turn("past", 0.3, at=0)
    story.tick(5)
    for number, trace in enumerate(traces[:-1]):
        story.trace(trace, 100 + number, ends_turn=False)
    if len(traces) == 1:
        scores = [item for item in scores if item[1] is not None]
    for metric, trace, value in scores:
        story.score(metric, value, trace, at=110, score_id=f"{metric}/{trace}")
    story.trace(traces[-1], 111)
    for number in range(1, 9):
        story.tick(111 + 1000 * number)
    return [report._replace(decided_at=0, position=Position(0, 0)) for report in story.reports]


@relaxed
@given(turns())
def test_the_order_in_which_scores_arrive_does_not_change_the_report(turn):
    rules, traces, scores, shuffled = turn
    assert told(rules, traces, scores) == told(rules, traces, shuffled)
