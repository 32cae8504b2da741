"""tgate scores: what people and programs say reaches eval-scores whole, or is refused with what helps."""

import json
from typing import Any

import pytest

from streams.core.model import ScoreSource
from streams.engine import partition_for
from streams.topics import EVAL_SCORES
from streams.wire import ScoreInput, Wire
from tests.cli.running import PARTITIONS, Topics


def submit(topics: Topics, *args: str) -> Any:
    return topics.run("scores", "submit", *args)


def published(topics: Topics) -> list[ScoreInput]:
    records = topics.records(EVAL_SCORES)
    assert {record.partition for record in records} <= {partition_for(b"s", PARTITIONS)}
    return [Wire().read_score(record.value, record.key, 0) for record in records]


def test_an_annotation_of_a_trace(topics: Topics) -> None:
    options = ("--session", "s", "--trace", "t", "--reason", "wrong shop", "--threshold", "0.6")
    result = submit(topics, "tool_correctness", "0.2", *options, "--metadata", '{"annotator": "kim"}', "--run", "r")
    assert result.exit_code == 0
    (found,) = published(topics)
    score = found.score
    assert (found.session_id, score.trace_id, score.name, score.value) == ("s", "t", "tool_correctness", 0.2)
    assert (score.source, score.reason, score.threshold) == (ScoreSource.ANNOTATION, "wrong shop", 0.6)
    assert score.eval_run_id == "r"
    (record,) = topics.records(EVAL_SCORES)
    assert json.loads(json.loads(record.value)["metadata"]) == {"annotator": "kim", "threshold": 0.6}
    assert result.stdout == f"submitted tool_correctness 0.2 for trace t: {score.score_id}\n"


def test_a_programs_word_on_the_outcome(topics: Topics) -> None:
    result = submit(topics, "outcome_correct", "FALSE", "--session", "s", "--source", "programmatic", "--json")
    fields = json.loads(result.stdout)
    assert (fields["data_type"], fields["target"], fields["trace_id"]) == ("BOOLEAN", "SESSION", None)
    (found,) = published(topics)
    assert (found.score.source, found.score.value) == (ScoreSource.PROGRAMMATIC, 0.0)


def test_text_is_carried_when_it_is_called_so(topics: Topics) -> None:
    assert submit(topics, "style", "good", "--type", "categorical", "--session", "s").exit_code == 0
    (found,) = published(topics)
    assert (found.score.value, found.score.resolved) == (None, True)


def test_the_same_submission_has_the_same_id_and_another_one_another(topics: Topics) -> None:
    def score_id(*args: str) -> str:
        return str(json.loads(submit(topics, *args, "--session", "s", "--json").stdout)["score_id"])

    first = score_id("m", "0.5", "--trace", "t")
    assert score_id("m", "0.5", "--trace", "t") == first
    others = [
        score_id("m", "0.5"),
        score_id("m", "0.6", "--trace", "t"),
        score_id("m", "0.5", "--trace", "t", "--source", "programmatic"),
        score_id("m", "0.5", "--trace", "t", "--reason", "why"),
    ]
    assert len({first, *others}) == 5
    assert score_id("m", "0.5", "--id", "mine") == "mine"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("m", "1.2"), "value is '1.2', expected a decimal in [0, 1]"),
        (("m", "nan"), "value is 'nan', expected a decimal in [0, 1]"),
        (("m", "good"), "other text needs --type categorical"),
        (("m", "0.5", "--type", "boolean"), "expected true or false"),
        (("tool_correctness", "0.5"), "tool_correctness is about one trace: name it with --trace"),
        (("agent_reliability", "0.5", "--trace", "t"), "agent_reliability is about the session as a whole"),
        (("m", "0.5", "--metadata", "[1]"), "--metadata is one JSON object, such as"),
        (("m", "0.5", "--metadata", "{"), "--metadata is no JSON"),
        (("m", "0.5", "--session", ""), "--session is an id"),
        (("m", "0.5", "--trace", "a\nb"), "trace_id is 'a\\nb', expected 1 to 256 bytes"),
        (("m", "0.5", "--id", "x" * 300), "expected 1 to 256 bytes"),
        (("m", "0.5", "--threshold", "2"), "'--threshold'"),
    ],
)
def test_what_is_no_score_is_refused_before_it_is_sent(topics: Topics, args: tuple[str, ...], said: str) -> None:
    session = () if "--session" in args else ("--session", "s")
    result = submit(topics, *args, *session)
    assert result.exit_code == 2
    assert said in result.stderr
    assert topics.records(EVAL_SCORES) == []
