"""The fold of one log partition: time, repeats, ticks, expiry, restarts."""

import pytest

from streams.core.log import LogFold, PartitionState, Source
from streams.core.model import JournalEntry, StepFailed
from streams.core.rules import Rules
from tests.core.logbook import Log, Worker, fold_all
from tests.core.scenario import brief, ms

DAY = 86_400
DECIDED = [("report", "s/a", "quiet"), ("settled", "s/a", "none", "quiet")]


def said(worker: Worker) -> list[tuple]:
    return brief(output for _, output in worker.outputs)


def test_now_is_the_largest_time_seen():
    log = Log()
    log.tick(100)
    log.trace("s", "a", 40)
    worker = fold_all(log.records)
    assert worker.fold.now == ms(100)
    assert worker.state("s").turns[0].closed_at == ms(100)
    assert worker.state("s").last_activity == ms(100)


def test_an_event_before_the_first_rules_counts_as_absent_and_stops_nothing():
    """Retention has taken the log's start, and the state that stood for it is gone as well."""
    log = Log()
    log.trace("s", "a", 0)
    log.tick(1)
    log.rules()
    log.trace("s", "b", 2)
    worker = fold_all(log.records[1:])
    ((session_id, failed),) = worker.outputs
    assert (session_id, type(failed)) == ("s", StepFailed)
    assert "no rules record comes before it in session-log-0" in failed.error
    assert [trace.trace_id for turn in worker.state("s").turns for trace in turn.traces] == ["b"]


def test_a_source_position_not_beyond_the_last_one_is_a_repeat():
    log = Log()
    record = log.trace("s", "a", 0)
    later = log.score("s", "coherence", 0.9, "a")
    worker = fold_all(log.records)
    state = worker.state("s")
    repeats = [record._replace(offset=3, time=ms(9)), later._replace(offset=4)]
    assert worker.run(repeats).outputs == []
    assert worker.state("s") == state
    assert (worker.fold.position, worker.fold.now) == (5, ms(9))


@pytest.mark.parametrize(
    "source", [Source("in", "2", 0, 0), Source("in", "1", 1, 0), Source("other", "1", 0, 0), Source("in", "1", 0, 9)]
)
def test_another_topic_partition_or_a_later_offset_is_no_repeat(source):
    log = Log()
    log.score("s", "agent_reliability", 0.9)
    worker = fold_all(log.records)
    record = log.score("s", "agent_reliability", 0.8)._replace(source=source)
    worker.run([record])
    assert [output.scores[0].value for _, output in worker.outputs if hasattr(output, "scores")] == [0.9, 0.8]


def test_a_tick_reaches_the_sessions_that_are_due_in_their_order():
    log = Log()
    for session_id in ("z", "s", "later"):
        log.trace(session_id, "a", 10 if session_id == "later" else 0)
        log.score(session_id, "task_completion", 0.6, "a")
    log.tick(11)
    worker = fold_all(log.records)
    assert [session_id for session_id, _ in worker.outputs] == ["s", "s", "z", "z"]
    assert worker.fold.next_due == ms(12)


def test_next_due_follows_the_sessions():
    log = Log()
    worker = fold_all(log.records)
    assert worker.fold.next_due is None
    worker.run([log.trace("s", "a", 0)])
    assert worker.fold.next_due == ms(900)
    worker.run([log.score("s", "task_completion", 0.6, "a", at=5)])
    assert worker.fold.next_due == ms(7)
    worker.run([log.score("s", "coherence", 0.9, "a", at=6)])
    assert worker.fold.next_due is None


def test_a_stuck_input_is_named_in_the_journal():
    log = Log()
    log.tick(5, stuck=("eval-scores/3", "trace-ingested/0"))
    ((session_id, entry),) = fold_all(log.records).outputs
    assert session_id is None
    assert isinstance(entry, JournalEntry)
    assert (entry.kind, entry.reason, entry.detail, entry.time) == (
        "stuck_input",
        "backlog_does_not_move",
        "eval-scores/3, trace-ingested/0",
        ms(5),
    )


def test_a_session_idle_past_its_time_to_live_counts_as_absent():
    log = Log()
    log.turn("s", "a", 0.6, at=0)
    log.turn("s", "b", 0.6, at=7 * DAY + 0.001)
    worker = fold_all(log.records)
    assert worker.state("s").turn_count == 1
    assert [output.turn_number for _, output in worker.outputs if hasattr(output, "turn_number")] == [1, 1]


def test_a_session_idle_for_just_its_time_to_live_is_known():
    log = Log()
    log.turn("s", "a", 0.6, at=0)
    log.turn("s", "b", 0.6, at=7 * DAY)
    assert fold_all(log.records).state("s").turn_count == 2


def test_flush_names_what_has_expired_once():
    log = Log()
    log.turn("old", "a", 0.6, at=0)
    log.turn("new", "a", 0.6, at=100)
    worker = fold_all(log.records)
    touched, expired = worker.fold.flush()
    assert (sorted(touched), expired) == (["new", "old"], [])
    worker.run([log.tick(7 * DAY + 50)])
    assert worker.fold.flush() == ({}, ["old"])
    assert worker.fold.flush() == ({}, [])


def test_a_session_that_expired_while_it_waited_is_not_woken():
    log = Log(session_ttl_s=60)
    log.trace("s", "a", 0)
    log.tick(61, at=61)
    log.tick(1000)
    worker = fold_all(log.records)
    assert worker.outputs == []
    assert worker.fold.next_due is None


def test_what_has_expired_stays_so_whether_or_not_it_was_deleted_yet():
    log = Log()
    log.turn("s", "a", 0.6, at=0)
    cut = len(log.records)
    log.tick(8 * DAY)
    log.rules(session_ttl_s=30 * DAY)
    log.turn("s", "b", 0.6)
    deleted = fold_all(log.records[:cut]).save().run(log.records[cut : cut + 1]).save().run(log.records[cut + 1 :])
    assert deleted.state("s") == fold_all(log.records).state("s")


def test_equal_rules_change_nothing():
    log = Log()
    log.trace("s", "a", 0)
    worker = fold_all(log.records)
    state, position = worker.state("s"), worker.fold.state
    worker.run([log.rules()])
    assert worker.outputs == []
    assert worker.state("s") == state
    assert worker.fold.state == PartitionState(3, 0, position.rules, position.sources, position.metrics_since)


def test_a_switch_reaches_every_session_that_waits():
    log = Log()
    for session_id in ("z", "s", "idle"):
        log.trace(session_id, "a", 0)
        log.score(session_id, "task_completion", 0.6, "a")
    log.score("idle", "coherence", 0.9, "a")
    log.rules(tier1_metrics=("task_completion",))
    worker = fold_all(log.records)
    assert [(session_id, type(output).__name__) for session_id, output in worker.outputs[2:]] == [
        ("s", "Report"),
        ("s", "TurnSettled"),
        ("z", "Report"),
        ("z", "TurnSettled"),
    ]


def test_a_worker_that_takes_over_fires_the_waits_it_finds():
    log = Log()
    log.trace("s", "a", 0)
    log.score("s", "task_completion", 0.6, "a")
    worker = fold_all(log.records).save().restarted()
    assert worker.fold.next_due == ms(2)
    assert said(worker.run([log.tick(2)])) == DECIDED


def test_a_session_stored_beyond_the_position_puts_out_nothing_until_it_is_caught_up():
    log = Log()
    log.turn("s", "a", 0.6, at=0)
    start = fold_all(log.records[:1]).save()
    first = start.restarted().run(log.records[1:])
    assert said(first) == DECIDED
    second = first.save_states().restarted()
    assert second.position == start.position
    assert said(second.run(log.records[1:])) == []
    assert second.fold.state == first.fold.state
    assert second.state("s") == first.state("s")


def test_a_worker_that_died_before_its_first_position_starts_again():
    log = Log()
    log.turn("s", "a", 0.6, at=0)
    first = fold_all(log.records).save_states()
    second = first.restarted().run(log.records)
    assert said(second) == []
    assert second.state("s") == first.store["s"]


def test_the_partition_stands_in_positions():
    log = Log()
    log.turn("s", "a", 0.6, at=0)
    fold = LogFold(7, PartitionState(), {}.get)
    outputs = [output for record in log.records for _, outputs in fold.apply(record) for output in outputs]
    assert (outputs[0].position.partition, outputs[0].position.offset) == (7, 3)


def test_a_fold_that_has_read_nothing_has_nothing_to_store():
    fold = LogFold(0, PartitionState(), {}.get)
    assert fold.flush() == ({}, [])
    assert fold.get("s") is None
    assert fold.state == PartitionState()
    assert Rules() != fold.state.rules
