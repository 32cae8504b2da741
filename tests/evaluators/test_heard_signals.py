"""What is heard of signals is what session metrics are computed from, also after a restart, and each record once."""

import random

from streams.core.eval_states import StagePosition, TraceSignals
from streams.core.log import LogRecord, Source
from streams.core.model import ScoreSource
from streams.core.session import Tick
from streams.evaluators.heard_signals import MAX_SORTED, SIGNALS, HeardSignals
from streams.evaluators.session_metrics import agent_consistency, agent_reliability
from streams.wire import decode_state, encode_state
from tests.core.scenario import make_score
from tests.evaluators.stored import StoredState


class Log:
    """A session log that is heard."""

    def __init__(self, ttl_ms=1_000_000):
        self.state = StoredState()
        self.ttl_ms = ttl_ms
        self.offset = 0
        self.heard = HeardSignals(StagePosition(), self.state.get, ttl_ms)

    def restart(self):
        self.heard = HeardSignals(self.heard.place, self.state.get, self.ttl_ms)
        self.heard.restore(decode_state(TraceSignals, value) for _, value in self.state.items(b"t/"))

    def say(self, name, value, trace="t", session="s", at=0, source_offset=None, *, store=True, **changes):
        source = Source("eval-scores", "id", 0, self.offset if source_offset is None else source_offset)
        body = make_score(name, value, trace, **changes)
        self.heard.apply(LogRecord(self.offset, at, body, session, source))
        self.offset += 1
        if store:
            self.flush()

    def flush(self):
        touched, forgotten = self.heard.flush()
        self.state.store({key: encode_state(state) for key, state in touched.items()} | dict.fromkeys(forgotten))


def test_the_signals_are_those_of_the_metrics():
    assert set(SIGNALS) == {"confidence", "loop_detection", "tool_correctness", "coherence"}


def test_signals_are_heard_by_trace_in_order_and_nothing_else():
    log = Log()
    log.say("coherence", 0.9, "b")
    log.say("confidence", 0.4, "a", store=False)
    log.say("task_completion", 0.1, "a")
    log.say("agent_reliability", 0.1, None)
    log.heard.apply(LogRecord(9, 5, Tick(5)))
    assert log.heard.traces("s") == {"b": {"coherence": 0.9}, "a": {"confidence": 0.4}}
    assert log.heard.traces("other") == {}
    assert (log.heard.position, log.heard.now) == (10, 5)


def test_a_repeat_of_an_input_record_is_not_heard_again():
    log = Log()
    log.say("coherence", 0.9, source_offset=4)
    log.say("coherence", 0.1, source_offset=5)
    log.say("coherence", 0.9, source_offset=4)
    assert log.heard.traces("s") == {"t": {"coherence": 0.1}}
    log.restart()
    log.say("coherence", 0.9, source_offset=5)
    assert log.heard.traces("s") == {"t": {"coherence": 0.1}}


def test_session_metrics_follow_whatever_order_signals_come_in_and_when_they_are_asked_for():
    chance = random.Random(7)
    log = Log()
    for _ in range(400):
        source = ScoreSource.ANNOTATION if chance.random() < 0.1 else ScoreSource.AUTOMATED
        name, trace = chance.choice(sorted(SIGNALS)), f"t{chance.randrange(40)}"
        log.say(name, round(chance.random(), 3), trace, source=source, store=chance.random() < 0.5)
        if chance.random() < 0.2:
            signals = log.heard.traces("s")
            session = log.heard.session("s")
            assert session.agent_reliability() == agent_reliability(list(signals), signals)
            assert session.agent_consistency().value == agent_consistency(list(signals), signals).value
    log.flush()
    before = log.heard.traces("s"), log.heard.session("s").agent_reliability()
    log.restart()
    assert (log.heard.traces("s"), log.heard.session("s").agent_reliability()) == before
    assert list(log.heard.traces("s")) == list(before[0])


def test_an_idle_session_is_forgotten():
    log = Log(ttl_ms=100)
    log.say("coherence", 0.9, session="old", at=1000)
    log.say("coherence", 0.9, session="kept", at=1010)
    log.heard.session("old")
    log.restart()
    log.say("confidence", 0.5, session="kept", at=1105)
    assert log.heard.traces("old") == {}
    assert log.state.values.keys() == {b"t/kept\0t"}
    log.say("confidence", 0.5, session="old", at=1106)
    assert log.heard.traces("old") == {"t": {"confidence": 0.5}}
    assert log.heard.session("old").agent_reliability().metadata["traces_evaluated"] == 1


def test_only_so_many_sessions_are_kept_sorted():
    log = Log()
    log.say("coherence", 0.4, session="s")
    first = log.heard.session("s")
    for number in range(MAX_SORTED):
        log.heard.session(f"empty-{number}")
    assert log.heard.session("s") is not first
    assert log.heard.session("s").agent_reliability() == first.agent_reliability()
