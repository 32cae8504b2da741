"""The book of a partition's requests is the same after a restart, whatever was stored last."""

from dataclasses import replace

from streams.core.eval_requests import KEPT_MS, Answer
from streams.core.eval_states import Spending, StagePosition
from streams.core.model import EvalRequest
from streams.evaluators.request_book import RequestBook, key_of
from tests.evaluators.stored import StoredState

ASKED = EvalRequest("run", "s", "p", "s/b", 1, 1, ("a", "b"), ("coherence", "agent_reliability"), 7)
KEY = key_of(ASKED)
NUMBERS = (1, 2, 3)


class Desk:
    """A book whose changes are stored at once."""

    def __init__(self):
        self.state = StoredState(partition=2)
        self.restart()

    def restart(self):
        self.book = RequestBook(self.state, spending_ttl_ms=1_000)

    def ask(self, *requests, position=1, now=100):
        fresh, changes = self.book.accept(requests, StagePosition(position, 50), now)
        self.state.store(changes)
        return fresh

    def answer(self, *numbers, now=200, costs=None):
        self.book.note(KEY, [Answer(number, failed=number == 2) for number in numbers])
        self.state.store(self.book.changes([KEY], costs or {}, now))

    def missing(self):
        return [target.number for target in self.book.missing(KEY)]


def test_a_request_is_open_until_all_is_answered():
    desk = Desk()
    assert desk.ask(ASKED, replace(ASKED, attempt=2)) == {KEY}
    assert desk.ask(ASKED) == set()
    assert desk.missing() == [*NUMBERS]
    desk.answer(2)
    desk.restart()
    assert desk.missing() == [1, 3]
    assert (desk.book.open[KEY].failed, desk.book.place) == (1, StagePosition(1, 50))
    assert not desk.book.is_answered(KEY)
    desk.answer(1, 3)
    assert desk.book.open == {}
    assert [key[:2] for key in desk.state.values] == [b"p/", b"d/"]
    desk.restart()
    assert (desk.ask(ASKED), desk.book.open) == (set(), {})


def test_a_repeat_between_the_last_answer_and_its_storing_is_known():
    desk = Desk()
    desk.ask(ASKED)
    desk.book.note(KEY, [Answer(number, failed=False) for number in NUMBERS])
    desk.book.changes([KEY], {}, 200)
    assert desk.book.accept([ASKED], StagePosition(2), 201)[0] == set()


def test_parts_and_runs_stand_apart():
    desk = Desk()
    others = (replace(ASKED, part=1), replace(ASKED, run_id="other"), replace(ASKED, session_id="else"))
    assert len(desk.ask(ASKED, *others)) == 4


def test_what_is_asked_in_addition_is_remembered_with_the_rest():
    desk = Desk()
    desk.ask(ASKED)
    desk.answer(*NUMBERS)
    more = replace(ASKED, attempt=2, metrics=("confidence", "coherence"))
    assert desk.ask(more) == {KEY}
    desk.restart()
    assert {target.metric for target in desk.book.missing(KEY)} == {"confidence"}
    desk.answer(1, 2)
    assert desk.ask(more, ASKED) == set()


def test_an_answered_request_is_forgotten_after_a_day():
    desk = Desk()
    desk.ask(ASKED)
    desk.answer(*NUMBERS, now=200)
    desk.restart()
    desk.ask(now=200 + KEPT_MS)
    assert len(desk.state.values) == 2
    desk.ask(now=201 + KEPT_MS)
    assert len(desk.state.values) == 1
    assert desk.ask(ASKED, now=202 + KEPT_MS) == {KEY}


def test_what_a_session_costs_is_kept_while_it_grows():
    desk = Desk()
    desk.ask(ASKED)
    paid = [Answer(1, failed=False, evals=1, input_tokens=5, output_tokens=1)]
    desk.answer(1, costs={"s": paid}, now=200)
    desk.restart()
    desk.answer(2, costs={"s": paid}, now=900)
    assert desk.book.spending("s") == Spending(2, 12, 900)
    desk.ask(now=1_900)
    assert desk.book.spending("s") is not None
    desk.ask(now=1_901)
    assert desk.book.spending("s") is None


def test_every_change_has_the_position_with_the_requests_that_it_covers():
    desk = Desk()
    desk.ask(ASKED, position=7)
    (commit,) = desk.state.commits
    assert list(commit) == [b"r/run\0s\x000", b"p/2"]
