"""A log that begins with sessions as another log left them goes on as that log would have."""

from dataclasses import is_dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.gate import GateState
from streams.core.log import LogRecord
from streams.core.model import Candidate, JournalEntry, Position, Report
from streams.core.rules import Rules
from tests.core.logbook import Log, Worker
from tests.core.scenario import ms
from tests.core.strategies import SESSIONS, logs


def placeless(output):
    """Return an output without what names its place in a log."""
    nowhere = Position(0, 0)
    if isinstance(output, JournalEntry):
        return output._replace(journal_id="", notice=output.notice)
    if isinstance(output, Report):
        return output._replace(position=nowhere)
    if isinstance(output, Candidate):
        return replace(output, position=nowhere)
    if is_dataclass(output) and hasattr(output, "log_offset"):
        return replace(output, log_offset=0)
    return output


def carried(worker: Worker) -> list[LogRecord]:
    """Return a new log: the rules in force, then every session the worker knows."""
    known = sorted((state for name in SESSIONS if (state := worker.state(name))), key=lambda state: state.last_activity)
    bodies = [(worker.fold.rules, None), *((state, state.session_id) for state in known)]
    return [LogRecord(offset, worker.fold.now, body, name) for offset, (body, name) in enumerate(bodies)]


@settings(max_examples=60, deadline=None)
@given(log=logs(max_size=80), cut=st.integers(1, 80))
def test_it_decides_what_the_old_log_would_have(log, cut):
    old = Worker().run(log.records[:cut])
    begun = carried(old)
    new = Worker().run(begun).save().restarted()
    assert new.outputs == []
    old.outputs.clear()
    rest = log.records[cut:]
    old.run(rest)
    new.run(record._replace(offset=len(begun) + at) for at, record in enumerate(rest))
    assert [(name, placeless(output)) for name, output in new.outputs] == [
        (name, placeless(output)) for name, output in old.outputs
    ]
    for name in SESSIONS:
        before, after = old.state(name), new.state(name)
        assert (before and before._replace(offset=0)) == (after and after._replace(offset=0))


def test_a_session_that_the_log_knows_already_stays():
    log = Log()
    log.turn("s", "a", 0.3, at=1)
    worker = Worker().run(log.records)
    known = worker.state("s")
    stale = known._replace(gates={"task_completion": GateState(0.9, 0, 9)})
    worker.run([LogRecord(len(log.records), ms(2), stale, "s")])
    assert worker.state("s") == known


def test_a_carried_session_expires_by_its_own_last_activity():
    log = Log(session_ttl_s=2000)
    log.turn("s", "a", 0.3, at=1)
    state = Worker().run(log.records).state("s")
    worker = Worker().run([LogRecord(0, ms(1500), Rules(session_ttl_s=2000)), LogRecord(1, ms(1500), state, "s")])
    assert worker.state("s") is not None
    worker.save().run([LogRecord(2, ms(2002), Rules(session_ttl_s=2000))])
    assert worker.state("s") is None
    worker.save()
    assert worker.store == {}
