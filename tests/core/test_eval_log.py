"""The fold of the eval log: restarts, repeats, what waits for the owner, and what is forgotten."""

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.eval_log import (
    KEPT_MS,
    EvalLogFold,
    EvalLogRecord,
    EvalPartitionState,
    about,
    monitor_name,
    run_name,
)
from streams.core.model import ScoreTarget, StepFailed
from streams.core.monitors import (
    Monitor,
    MonitorDeleted,
    MonitorDue,
    MonitorPaused,
    MonitorPut,
    MonitorResumed,
    MonitorStatus,
    MonitorTriggered,
)
from streams.core.runs import FINISHED, EvalRun, MonitorRunEnded, PartHandled, RunBroke, RunCreated, RunPlanned

BEGINNING = EvalPartitionState()


def run(run_id="r", **more):
    return EvalRun(run_id, "p", "", ScoreTarget.TRACE, ("coherence",), 1, **more)


def monitor(monitor_id="m", next_run_at=100, **more):
    return Monitor(monitor_id, "p", "", ScoreTarget.TRACE, ("coherence",), "daily", 1, next_run_at=next_run_at, **more)


def log(*events, time=1_000):
    return [EvalLogRecord(offset, time + offset, event) for offset, event in enumerate(events)]


def folded(records, state=BEGINNING, states=None):
    fold = EvalLogFold(state, ({} if states is None else states).get)
    return fold, [fold.apply(record) for record in records]


def test_runs_and_monitors_of_one_name_are_two_things():
    fold, outputs = folded(log(RunCreated(run("x"), ()), MonitorPut(monitor("x"))))
    assert [len(found) for found in outputs] == [1, 1]
    touched, forgotten = fold.flush()
    assert (sorted(touched), forgotten) == (["m/x", "r/x"], [])
    assert fold.flush() == ({}, [])


def test_the_owner_learns_what_is_to_be_done():
    events = (RunCreated(run("a"), ()), RunCreated(run("b"), ()), MonitorPut(monitor()), MonitorPut(monitor("n", 200)))
    fold, _ = folded(log(*events))
    assert (fold.unplanned, fold.unfinished) == (("a", "b"), ("a", "b"))
    assert (fold.due(99), fold.due(100), fold.due(200)) == ((), ("m",), ("m", "n"))
    assert (fold.silent_since(1_001), fold.silent_since(1_002)) == (("a",), ("a", "b"))
    more = (RunPlanned("a", 1, 1), MonitorPaused("m"), RunBroke("b", "x"))
    for record in log(*events, *more)[len(events) :]:
        fold.apply(record)
    assert (fold.unplanned, fold.unfinished, fold.due(999)) == ((), ("a",), ("n",))


def test_the_indexes_come_back_with_the_states():
    records = log(RunCreated(run("a"), ()), RunCreated(run("b"), ()), MonitorPut(monitor()), RunPlanned("b", 1, 1))
    whole, _ = folded(records)
    states, _ = whole.flush()
    again = EvalLogFold(whole.state, states.get)
    again.restore(states.values())
    assert (again.unplanned, set(again.unfinished), again.due(100)) == (("a",), {"a", "b"}, ("m",))


def test_a_finished_run_is_remembered_for_a_while_and_then_forgotten():
    created, ended = RunCreated(run("a"), ()), RunPlanned("a", 0, 0)
    states = {}
    fold, _ = folded([EvalLogRecord(0, 5, created), EvalLogRecord(1, 5, ended)], states=states)
    states.update(fold.flush()[0])
    assert fold.apply(EvalLogRecord(2, 5 + KEPT_MS, created)) == ()
    assert fold.flush() == ({}, [])
    fold.apply(EvalLogRecord(3, 6 + KEPT_MS, MonitorPut(monitor())))
    assert fold.flush()[1] == ["r/a"]
    late = EvalLogRecord(4, 6 + KEPT_MS, created)
    kept = EvalLogFold(EvalPartitionState(4, 6 + KEPT_MS), states.get)
    gone = EvalLogFold(EvalPartitionState(4, 6 + KEPT_MS), {}.get)
    assert kept.apply(late) == gone.apply(late) == (run("a"),)


def test_a_step_that_raises_is_told_and_changes_nothing(monkeypatch):
    def broken(*_):
        raise RuntimeError("told to")

    fold, _ = folded(log(RunCreated(run("a"), ())))
    monkeypatch.setattr("streams.core.runs.step", broken)
    assert fold.apply(EvalLogRecord(1, 9, RunPlanned("a", 1, 1))) == (StepFailed("a", "RuntimeError: told to"),)
    assert (fold.position, fold.unplanned) == (2, ("a",))


monitor_ids = st.sampled_from(["m", "n"])
counts = st.integers(0, 3)


class Story:
    """A log as it comes about: the owner and the stages say only what the fold gives them reason to say."""

    def __init__(self, data):
        self.draw = data.draw
        self.fold = EvalLogFold(BEGINNING, {}.get)
        self.events = []
        self.follow_ups = []

    def go_on(self):
        """Let one more thing happen."""
        options = [self.of_run, self.of_run, self.order, self.due, self.trigger]
        if self.follow_ups:
            options += [self.follow_up] * 3
        self.say(self.draw(st.sampled_from(options))())

    def say(self, event):
        if event is None:
            return
        at = len(self.events)
        self.events.append(event)
        outputs = self.fold.apply(EvalLogRecord(at, 1_000 + at, event))
        self.follow_ups += [found for found in outputs if isinstance(found, RunCreated | MonitorRunEnded)]

    def of_run(self):
        name = self.draw(st.sampled_from(["a", "b", *self.fold.unfinished]))
        if self.fold.run(name) is None:
            return RunCreated(run(name), (1,))
        return self.draw(
            st.one_of(
                st.just(RunPlanned(name, 6, 3)),
                st.builds(PartHandled, st.just(name), st.just("s"), st.integers(-1, 3), st.just(2), counts),
                st.just(RunBroke(name, "x")),
            )
        )

    def order(self):
        name, later = self.draw(monitor_ids), 1_000 * len(self.events)
        if self.fold.monitor(name) is None:
            return MonitorPut(monitor(name, later))
        orders = (
            MonitorPut(monitor(name, later)),
            MonitorPaused(name),
            MonitorResumed(name, later),
            MonitorDeleted(name),
        )
        return self.draw(st.sampled_from(orders))

    def due(self):
        known = self.fold.monitor(self.draw(monitor_ids))
        if known is None or known.monitor.next_run_at is None:
            return None
        at, later = known.monitor.next_run_at, 1_000 * len(self.events) + 500
        return MonitorDue(known.monitor.monitor_id, at, at, max(at + 1, later), (at,), self.draw(st.booleans()))

    def trigger(self):
        name = self.draw(monitor_ids)
        return None if self.fold.monitor(name) is None else MonitorTriggered(name, len(self.events), (1,))

    def follow_up(self):
        return self.follow_ups.pop(0)


@st.composite
def logs(draw):
    story = Story(SimpleNamespace(draw=draw))
    for _ in range(draw(st.integers(0, 25))):
        story.go_on()
    return story.events


@settings(max_examples=150, deadline=None)
@given(logs(), st.data())
def test_a_restart_at_any_point_changes_nothing(found, data):
    records = log(*found)
    whole, expected = folded(records)
    cut = data.draw(st.integers(0, len(records)))
    first, outputs = folded(records[:cut])
    stored = first.flush()[0]
    # A crash between the states and the position record: what is stored may be ahead of the position.
    behind = data.draw(st.integers(0, cut))
    second = EvalLogFold(EvalPartitionState(behind), stored.get)
    second.restore(stored.values())
    again = [second.apply(record) for record in records[behind:]]
    assert outputs == expected[:cut]
    assert again[: cut - behind] == [()] * (cut - behind)
    assert again[cut - behind :] == expected[cut:]
    assert {**stored, **second.flush()[0]} == whole.flush()[0]
    for owed in (lambda fold: fold.unplanned, lambda fold: fold.unfinished, lambda fold: fold.due(10**9)):
        assert set(owed(second)) == set(owed(whole))


@settings(max_examples=150, deadline=None)
@given(logs(), st.data())
def test_what_stages_and_owners_say_again_changes_nothing(found, data):
    """Wherever the repeat stands in the log; what people say again later is another word."""
    again = []
    for event in found:
        again.append(event)
        said = [earlier for earlier in again if not isinstance(earlier, MonitorPut | MonitorPaused | MonitorResumed)]
        if said and data.draw(st.booleans()):
            again.append(data.draw(st.sampled_from(said)))
    once, expected = folded(_at_one_time(found))
    twice, outputs = folded(_at_one_time(again))
    assert _said(outputs) == _said(expected)
    assert _plain(twice) == _plain(once)


@settings(max_examples=200, deadline=None)
@given(logs())
def test_whatever_is_said_twice_at_once_counts_once(found):
    once, expected = folded(_at_one_time(found))
    twice, outputs = folded(_at_one_time([event for event in found for _ in range(2)]))
    assert _said(outputs) == _said(expected)
    assert _plain(twice) == _plain(once)


def _at_one_time(found):
    return [EvalLogRecord(offset, 7, event) for offset, event in enumerate(found)]


def _said(outputs):
    return [output for found in outputs for output in found]


def _plain(fold):
    return {name: state._replace(offset=0) for name, state in fold.flush()[0].items()}


@settings(max_examples=200, deadline=None)
@given(logs())
def test_counts_stay_within_what_was_asked_for_and_a_monitor_has_a_next_time_unless_paused(found):
    fold, outputs = folded(log(*found))
    assert not [output for output in _said(outputs) if isinstance(output, StepFailed)]
    for name, state in fold.flush()[0].items():
        if name.startswith("m/"):
            assert (state.monitor.next_run_at is None) == (state.monitor.status is MonitorStatus.PAUSED)
        elif state.parts is not None:
            assert 0 <= state.run.evaluated_count <= state.run.total_targets
            assert (state.run.status in FINISHED) == (state.run.completed_at is not None)


def test_every_event_has_a_key():
    found = [RunCreated(run("a"), ()), PartHandled("a", "s", 0, 1, 0), MonitorRunEnded("m", "a", None)]
    assert [about(event) for event in found] == ["a", "a", "m"]


def test_names():
    assert (run_name("x"), monitor_name("x")) == ("r/x", "m/x")
