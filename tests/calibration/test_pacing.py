"""Pace in arrays is what the core says step by step, its lines are quantiles of what was seen, and no session judges itself."""

import random
from itertools import pairwise

import numpy as np
import pytest

from streams.calibration.calibration import Calibration, Wish, calibrate
from streams.calibration.choosing import FOLDS, Verdict, folds
from streams.calibration.evidence import Evidence
from streams.calibration.lines import BEHIND, Series, learn
from streams.calibration.pacing import QUANTILES, PaceSetting, Pacing
from streams.calibration.seen import Seen
from streams.calibration.sweep import Sweep
from streams.calibration.tracks import Tracks, tracks
from streams.core.detectors import quantile
from streams.core.log import LogRecord
from streams.core.model import Score, Trace, TraceStatus
from streams.core.pace import Pace
from streams.core.rules import Rules
from streams.replay.folding import Replay

TASKS = ("easy", "hard", None)


def some_tracks(seed: int, sessions: int = 90, metrics: int = 1) -> Tracks:
    """Return sessions of all lengths and of one or more metrics, values missing, turns of several traces."""
    chance = random.Random(seed)

    def value(step: int) -> float | None:
        return None if seed and chance.random() < 0.15 else min(1.0, chance.random() * step / 12)

    held = []
    for number in range(sessions):
        rows = [[value(step) for _ in range(metrics)] for step in range(chance.choice((0, 3, 14, 14, 40)))]
        ends = [chance.random() < 0.5 for _ in rows] if seed % 2 else None
        held.append((f"s{number}", rows, ends))
    return tracks([f"m{at}" for at in range(metrics)], held)


def evidence_of(found: Tracks, failed: set[int] | None = None) -> Evidence:
    count = len(found.names)
    nothing = Sweep(np.zeros((1, count), np.int32), np.zeros((1, count), np.int32))
    if failed is None:
        return Evidence(nothing, found.lengths, np.zeros(count, np.bool_), np.zeros(count, np.bool_)).strictly()
    bad = np.array([at in failed for at in range(count)])
    return Evidence(nothing, found.lengths, bad, ~bad)


def by_step(found: Tracks, session: int, paces: dict[str, Pace]) -> tuple[int, int]:
    """Return the notices of a session and the trace of the first one, by the core's own steps."""
    states = {name: pace.start() for name, pace in paces.items()}
    fired_in_turn = False
    notices = first = 0
    span = range(found.starts[session], found.starts[session + 1])
    for trace, place in enumerate(span, 1):
        for metric, value in zip(found.metrics, found.values[:, place], strict=True):
            if metric in paces and not np.isnan(value):
                states[metric], fired = paces[metric].step(states[metric], float(value))
                fired_in_turn = fired_in_turn or fired
        if (found.ends is None or found.ends[place] or place == span[-1]) and fired_in_turn:
            notices, first, fired_in_turn = notices + 1, first or trace, False
    return notices, first


def own(paces: list[Pace], task: str | None) -> Pace | None:
    by_task = {pace.task: pace for pace in paces}
    return by_task.get(task) or by_task.get(None)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by_task", [False, True])
def test_every_setting_says_what_the_core_says_by_lines_learned_without_the_session(
    seed: int, *, by_task: bool
) -> None:
    found = some_tracks(seed, metrics=1 + seed // 2)
    tasks = [TASKS[at % 3] for at in range(len(found.names))] if by_task else None
    evidence = evidence_of(found, None if seed % 2 else set(range(0, len(found.names), 5)))
    dealt = folds(evidence.failed, found.names)
    pacing = Pacing(found, evidence, tasks, dealt)
    judged = pacing.judged
    spoken = 0
    learned = {
        fold: [
            learn(Series.of(found, at), evidence.good & (dealt != fold), tasks, QUANTILES)
            for at in range(len(found.metrics))
        ]
        for fold in range(FOLDS)
    }
    for number in range(seed, len(pacing.settings), 17):
        setting = pacing.settings[number]
        for session in range(len(found.names)):
            task = tasks[session] if tasks else None
            held = zip(found.metrics, learned[int(dealt[session])], strict=True)
            paces = {name: pace for name, lines in held if (pace := own(lines.paces(name, *setting), task))}
            expected = by_step(found, session, paces)
            said = int(judged.sweep.notices[number, session]), int(judged.sweep.first[number, session])
            assert said == expected, (setting, session)
            spoken += said[0]
    assert spoken > 50


def test_a_line_is_the_quantile_of_the_running_peak_and_ends_where_few_went_on() -> None:
    found = some_tracks(0)
    series = Series.of(found, 0)
    used = np.ones(len(found.names), np.bool_)
    lines = learn(series, used, None, QUANTILES)
    sessions = [found.of(session) for session in range(len(found.names))]
    for q in range(len(QUANTILES)):
        (pace,) = lines.paces("m0", q, 0, 1) or [None]
        if pace is None:
            continue
        for number in range(1, 41):
            peaks = tuple(float(values[:number].max()) for values in sessions if len(values) >= number)
            line = pace.line(number)
            if len(peaks) < BEHIND or number < pace.points[0].trace:
                assert line is None
                continue
            exact = quantile(peaks, QUANTILES[q])
            assert line is not None
            assert line <= exact + 1e-9
            if number <= 10:
                assert line == pytest.approx(exact, abs=0.01)
        assert all(point.sessions >= BEHIND for point in pace.points)
        assert all(before.line != after.line for before, after in pairwise(pace.points))
        assert len(pace.points) < 20


def test_a_file_begins_where_pace_begins_to_judge() -> None:
    lines = learn(Series.of(some_tracks(0), 0), np.ones(90, np.bool_), None, QUANTILES)
    (whole,) = lines.paces("m", 4, 0, 1)
    (late,) = lines.paces("m", 4, 7, 2)
    assert late.points[0].trace == 8
    assert [late.line(number) for number in range(8, 50)] == [whole.line(number) for number in range(8, 50)]


def test_a_task_has_its_own_line_as_far_as_it_has_sessions() -> None:
    """The easy task's sessions are short and high, the hard ones long and low; rare tasks go by the line for all."""
    easy = [(f"e{at}", [[0.5], [0.8], [0.9]], None) for at in range(30)]
    hard = [(f"h{at}", [[0.1], [0.2], [0.3], [0.4]], None) for at in range(30)]
    rare = [(f"r{at}", [[0.1]], None) for at in range(5)]
    found = tracks(("m",), [*easy, *hard, *rare])
    tasks = ["easy"] * 30 + ["hard"] * 30 + ["rare"] * 5
    lines = learn(Series.of(found, 0), np.ones(65, np.bool_), tasks, (0.5,))
    paces = {pace.task: [pace.line(number) for number in range(1, 6)] for pace in lines.paces("m", 0, 0, 1)}
    assert paces["easy"] == [0.5, 0.8, 0.9, 0.4, None]
    assert paces["hard"] == [0.1, 0.2, 0.3, 0.4, None]
    assert set(paces) == {None, "easy", "hard"}


def test_what_is_in_a_part_changes_nothing_that_it_is_judged_by() -> None:
    first = some_tracks(0)
    evidence = evidence_of(first)
    dealt = folds(evidence.failed, first.names)
    values = first.values.copy()
    for session in np.flatnonzero(dealt == 0):
        values[:, first.starts[session] : first.starts[session + 1]] = 0.77
    second = Tracks(first.names, first.metrics, values, first.starts, first.ends)
    pacings = [Pacing(found, evidence, None, dealt) for found in (first, second)]
    rests = [pacing.parts(0)[0].sweep for pacing in pacings]
    assert np.array_equal(rests[0].notices, rests[1].notices)
    assert np.array_equal(rests[0].first, rests[1].first)
    assert not np.array_equal(pacings[0].parts(1)[0].sweep.first, pacings[1].parts(1)[0].sweep.first)


RULES = Rules(tier1_metrics=("m",), tier2_metrics=())


def calibrated(wish: Wish, failing: int = 3, sessions: int = 300) -> Calibration:
    """Good sessions climb by about 0.1 a trace; every *failing*-th one hardly moves and goes on longer."""
    chance = random.Random(4)
    seen, replay = Seen(), Replay()
    replay.begin(RULES)
    offset = 1
    for number in range(sessions):
        slow = number % failing == 0
        value = 0.0
        for step in range(24 if slow else 10):
            value = min(1.0, value + chance.random() * (0.02 if slow else 0.2))
            trace = Trace(f"{number}-{step}", "p", TraceStatus.COMPLETED, step, task="kind")
            score = Score(f"{number}-{step}", f"{number}-{step}", "m", value)
            for body in (trace, score):
                seen.take(replay.apply(0, LogRecord(offset, step, body, f"s{number}")))
                offset += 1
    return calibrate(seen, RULES, wish)


LABELS = {f"s{number}": number % 3 == 0 for number in range(300)}


def test_what_lags_is_found_within_the_budget_and_the_lines_are_ready_for_the_rules() -> None:
    found = calibrated(Wish(LABELS, 1 / 100)).pace
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.verdict is Verdict.CHOSEN
    assert found.chosen.held_out is not None
    assert found.chosen.held_out.found >= 95
    assert found.chosen.held_out.false_alarms <= found.chosen.held_out.good_traces / 100
    (pace,) = found.paces
    assert found.learned_from == 200
    assert (pace.metric, pace.until) == ("m", 10)
    assert Rules.from_text(Rules(pace=found.paces).text).pace == found.paces


def test_without_labels_every_alarm_counts_as_false() -> None:
    found = calibrated(Wish(None, 1 / 50)).pace
    assert found is not None
    assert found.chosen is not None
    assert found.evidence.strict
    assert found.chosen.verdict is Verdict.CHOSEN
    held = found.chosen.held_out
    assert held is not None
    assert (held.failed, held.good_traces) == (300, 4400)
    assert held.found <= held.false_alarms <= 4400 / 50
    assert held.found >= 60


def test_a_budget_that_nothing_keeps_is_refused() -> None:
    found = calibrated(Wish(LABELS, 1 / 100_000)).pace
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.verdict in {Verdict.TOO_FEW, Verdict.OVER_BUDGET}


def test_without_budget_and_labels_there_is_nothing_to_compare() -> None:
    assert calibrated(Wish()).pace is None
    without_budget = calibrated(Wish(LABELS)).pace
    assert without_budget is not None
    assert without_budget.chosen is None


def test_a_setting_says_itself() -> None:
    assert str(PaceSetting(3, 8, 1)) == "quantile 0.1, 1 trace after trace 8"
    assert str(PaceSetting(2, 0, 3)) == "quantile 0.05, 3 traces in a row after trace 0"
