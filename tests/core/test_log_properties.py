"""What holds for every log: restarts, repeats and crashes change nothing that anybody sees."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.model import Candidate, EvalRequest, TurnSettled
from tests.core.logbook import Log, Worker, fold_all, identity
from tests.core.strategies import SESSIONS, logs

cuts = st.integers(0, 60)
relaxed = settings(max_examples=60, deadline=None)


def final(worker: Worker) -> dict:
    """Return what the fold finds now, for every session."""
    return {session_id: worker.state(session_id) for session_id in SESSIONS}


@relaxed
@given(logs(), st.lists(cuts, max_size=4))
def test_restarts_at_any_point_change_nothing(log, at):
    whole, pieces, begin = fold_all(log.records), Worker(), 0
    outputs = []
    for end in [*sorted(at), len(log.records)]:
        pieces.run(log.records[begin:end]).save()
        outputs += pieces.outputs
        pieces, begin = pieces.restarted(), max(begin, end)
    assert outputs == whole.outputs
    assert final(pieces) == final(whole)
    assert pieces.fold.state == whole.fold.state


@relaxed
@given(logs(), cuts, cuts, st.sets(st.sampled_from(SESSIONS)))
def test_a_crash_between_states_and_position_changes_nothing(log, start, length, stored):
    start = min(start, len(log.records))
    end = start + length
    whole = fold_all(log.records)
    first = Worker().run(log.records[:start]).save().restarted().run(log.records[start:end])
    second = first.save_states(stored).restarted().run(log.records[start:])
    ahead = {session_id for session_id in stored if session_id in first.store}
    beyond = [item for item in second.outputs if item[0] in ahead]
    assert beyond == [item for item in whole.outputs if item[0] in ahead and item[1] in outputs_after(log, end)]
    assert [item for item in second.outputs if item[0] not in ahead] == [
        item for item in whole.outputs if item[0] not in ahead and item[1] in outputs_after(log, start)
    ]
    assert final(second) == final(whole)
    assert second.fold.state == whole.fold.state


def outputs_after(log: Log, offset: int) -> list:
    """Return what the records from *offset* on put out."""
    worker = Worker().run(log.records[:offset])
    seen = len(worker.outputs)
    return [output for _, output in worker.run(log.records[offset:]).outputs[seen:]]


@relaxed
@given(logs())
def test_input_records_applied_twice_change_nothing(log):
    worker = fold_all(log.records)
    states, seen = final(worker), len(worker.outputs)
    offset = len(log.records)
    repeats = [record for record in log.records if record.source is not None]
    worker.run([record._replace(offset=offset + number) for number, record in enumerate(repeats)])
    assert worker.outputs[seen:] == []
    assert final(worker) == states


@relaxed
@given(logs())
def test_a_repeat_in_the_middle_changes_no_decision(log):
    """Each input record is followed at once by its repeat, as from an ingest that lost an ack."""
    doubled = []
    for record in log.records:
        times = 1 if record.source is None else 2
        doubled += [record._replace(offset=len(doubled) + number) for number in range(times)]
    assert [identity(*item) for item in fold_all(doubled).outputs if identity(*item)[0] != "journal"] == [
        identity(*item) for item in fold_all(log.records).outputs if identity(*item)[0] != "journal"
    ]


@relaxed
@given(logs(max_size=120))
def test_the_ids_of_outputs_are_unique(log):
    found = [identity(*item) for item in fold_all(log.records).outputs]
    assert len(found) == len(set(found))


@relaxed
@given(logs(), st.data())
def test_ids_do_not_depend_on_rules(log, data):
    other = data.draw(logs(max_size=0))
    swapped = [other.records[0], *log.records[1:]]
    one, two = (ids_by_place(fold_all(records)) for records in (log.records, swapped))
    assert {place: one[place] for place in one.keys() & two.keys()} == {
        place: two[place] for place in one.keys() & two.keys()
    }


def ids_by_place(worker: Worker) -> dict:
    """Return the id of every output that stands for a turn, by where it stands."""
    found = {}
    for session_id, output in worker.outputs:
        match output:
            case Candidate():
                notice = output.notice
                found["notice", session_id, notice.project, notice.lane, notice.turn_id] = notice.notice_id
            case EvalRequest():
                found["run", session_id, output.turn_id, output.tier] = output.run_id
            case TurnSettled():
                found["settled", session_id, output.lane, output.turn_id] = output.settled_id
    return found


@relaxed
@given(logs())
def test_every_decided_turn_is_settled_or_goes_on_to_the_breaker(log):
    found = {"report": set(), "end": set()}
    for session_id, output in fold_all(log.records).outputs:
        match output:
            case Candidate():
                found["end"].add((session_id, output.notice.lane, output.notice.turn_id))
            case TurnSettled() if not output.reason.startswith(("eval_sample", "session_min")):
                found["end"].add((session_id, output.lane, output.turn_id))
        if type(output).__name__ == "Report":
            found["report"].add((session_id, output.lane, output.turn_id))
    assert found["report"] == found["end"]
