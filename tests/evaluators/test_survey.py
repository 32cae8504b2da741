"""What was ingested is read up to fixed offsets, as its updates leave it; scores of a run count once."""

import asyncio
import json
from typing import Any

import pytest

from streams import reading
from streams.broker import RunningBroker
from streams.core.run_plan import FailedScore
from streams.engine import Out
from streams.evaluators.survey import ends_of, failed_among, scores_of, traces_before, was_ingested
from streams.reading import Place
from streams.topics import EVAL_SCORES, TRACES
from streams.wire import Wire
from tests.cli.running import Topics, topics_of_its_own

WIRE = Wire()


@pytest.fixture
def topics(broker: RunningBroker) -> Topics:
    made = topics_of_its_own(broker)
    assert made.run("topics", "create").exit_code == 0
    return made


def trace(trace_id: str, **fields: Any) -> bytes:
    given = {"trace_id": trace_id, "session_id": "s", "status": "COMPLETED", "started_at": 5, "project": "p"}
    return json.dumps({**given, **fields}).encode()


def put(topics: Topics, role: str, *values: bytes, partition: int = 0, times: tuple[int, ...] = ()) -> None:
    name = topics.settings.topic_names[role]
    stamps = times or (None,) * len(values)
    topics.put([], *(Out(name, partition, b"s", value, (), at) for value, at in zip(values, stamps, strict=True)))


def place(topics: Topics, role: str) -> Place:
    (found,) = asyncio.run(reading.locate(topics.settings, role))
    return found


def test_traces_are_as_their_updates_left_them_at_an_offset(topics: Topics) -> None:
    first = trace("t", name="first", tags=["a"], user_id="ada")
    # The later record has the earlier time: clocks differ.
    put(topics, TRACES, first, trace("t", name="second", tags=["b"]), times=(2_000, 1_000))
    put(topics, TRACES, trace("u"), partition=1)
    ends = asyncio.run(ends_of(place(topics, TRACES)))
    assert ends == (2, 1)
    put(topics, TRACES, trace("t", name="third"), trace("v"), b"\x01rubbish")
    found = {fact.trace_id: fact for fact in asyncio.run(traces_before(place(topics, TRACES), WIRE, ends))}
    assert found.keys() == {"t", "u"}
    assert (found["t"].name, found["t"].tags, found["t"].user_id) == ("second", ("a", "b"), "ada")
    later = asyncio.run(ends_of(place(topics, TRACES)))
    assert {fact.trace_id for fact in asyncio.run(traces_before(place(topics, TRACES), WIRE, later))} == {"t", "u", "v"}


@pytest.mark.parametrize(
    ("since", "project", "came"),
    [((1, 0), "p", True), ((1, 0), "other", False), ((2, 0), "p", False), ((1,), "other", True)],
)
def test_whether_anything_of_a_project_came_since(
    topics: Topics, since: tuple[int, ...], project: str, came: bool
) -> None:
    put(topics, TRACES, trace("t"), trace("u"))
    found = place(topics, TRACES)
    ends = asyncio.run(ends_of(found))
    assert asyncio.run(was_ingested(found, WIRE, project, since, ends)) is came


def test_a_runs_scores_count_once_and_those_that_failed_are_known(topics: Topics) -> None:
    def score(score_id: str, run: str, status: str = "FAILED", **fields: Any) -> bytes:
        given = {"score_id": score_id, "trace_id": "t", "name": "m", "status": status, "value": None}
        return json.dumps({**given, "eval_run_id": run, **fields}).encode()

    twice = score("1", "r")
    put(topics, EVAL_SCORES, twice, twice, score("2", "other"), b"rubbish")
    put(topics, EVAL_SCORES, score("3", "r", trace_id=None, name="n"), score("4", "r", "SUCCESS", value="1"))
    found = asyncio.run(scores_of(place(topics, EVAL_SCORES), WIRE, "r", 0))
    assert sorted(item["score_id"] for item in found) == ["1", "3", "4"]
    assert set(failed_among(found)) == {FailedScore("s", "t", "m"), FailedScore("s", None, "n")}
