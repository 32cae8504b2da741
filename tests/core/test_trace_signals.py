"""Which of several scores of a signal counts in session metrics."""

from streams.core.model import ScoreSource, ScoreStatus
from streams.core.trace_signals import counting, heard
from tests.core.scenario import make_score

PERSON = ScoreSource.ANNOTATION


def told(*scores):
    state = None
    for offset, score in enumerate(scores):
        state = heard(state, "s", score, offset + 10, offset) or state
    return state


def test_the_newest_success_counts():
    state = told(
        make_score("coherence", 0.2, "t"), make_score("coherence", 0.7, "t"), make_score("confidence", 0.9, "t")
    )
    assert counting(state) == {"coherence": 0.7, "confidence": 0.9}
    assert (state.session_id, state.trace_id, state.place, state.changed_at) == ("s", "t", 10, 2)


def test_a_person_counts_for_good_and_the_newest_word_of_one():
    state = told(
        make_score("coherence", 0.2, "t"),
        make_score("coherence", 0.0, "t", source=PERSON),
        make_score("coherence", 0.9, "t"),
    )
    assert counting(state) == {"coherence": 0.0}
    state = heard(state, "s", make_score("coherence", 1.0, "t", source=PERSON), 20, 9)
    assert counting(state) == {"coherence": 1.0}


def test_a_program_is_not_a_person():
    state = told(make_score("coherence", 0.2, "t", source=ScoreSource.PROGRAMMATIC), make_score("coherence", 0.4, "t"))
    assert counting(state) == {"coherence": 0.4}


def test_what_has_no_value_says_nothing():
    assert heard(None, "s", make_score("coherence", None, "t"), 1, 1) is None
    assert heard(None, "s", make_score("coherence", None, "t", status=ScoreStatus.PENDING), 1, 1) is None
    assert heard(None, "s", make_score("coherence", 0.5), 1, 1) is None
    known = told(make_score("coherence", 0.5, "t"))
    assert heard(known, "s", make_score("coherence", None, "t", source=PERSON), 2, 2) is None
