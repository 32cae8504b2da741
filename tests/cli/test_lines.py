"""Lines that people and programs publish: told apart, completed, checked."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from streams import lines
from streams.errors import InvalidRecord
from streams.lines import Lines, opened, split
from streams.topics import EVAL_SCORES, TRACE_INGESTED
from streams.wire import Wire

TRACE = {"session_id": "s1", "trace_id": "t1"}
SCORE = {**TRACE, "name": "task_completion", "value": 0.4}


def _prepare(*written: Any) -> list[lines.Prepared]:
    prepare = Lines(Wire("json")).prepare
    return [prepare(json.dumps(line).encode()) for line in written]


def test_the_least_trace_is_completed() -> None:
    (made,) = _prepare(TRACE)
    assert (made.role, made.key) == (TRACE_INGESTED, b"s1")
    value = json.loads(made.value)
    assert made.recorded_at == value.pop("started_at")
    assert value == {**TRACE, "name": "trace", "status": "COMPLETED"}


def test_the_least_score_is_completed() -> None:
    (made,) = _prepare(SCORE)
    assert (made.role, made.key, made.recorded_at) == (EVAL_SCORES, b"s1", None)
    value = json.loads(made.value)
    assert len(value.pop("score_id")) == 32
    assert value == SCORE


@pytest.mark.parametrize("end", [b"", b"\n", b"\n{}"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(end: bytes) -> None:
    marked = b"\xef\xbb\xbf{}" + end
    texts = [line.text for found in split(io.BytesIO(marked)) for line in found]
    assert texts == [b"{}"] * (1 + end.count(b"{"))


@pytest.mark.parametrize("field", ["score_id", "value", "data_type", "target", "eval_run_id", "created_at", "source"])
def test_a_field_that_only_scores_have_makes_a_score(field: str) -> None:
    values = {"value": 1, "data_type": "CATEGORICAL", "target": "TRACE", "created_at": 5, "source": "ANNOTATION"}
    line = {**TRACE, "name": "m", "status": "FAILED", field: values.get(field, "x")}
    assert _prepare(line)[0].role == EVAL_SCORES


def test_a_complete_line_is_published_as_it_came() -> None:
    for line in ({**TRACE, "name": "n", "status": "COMPLETED", "started_at": 1}, {**SCORE, "score_id": "x"}):
        text = json.dumps(line).encode()
        assert Lines(Wire("json")).prepare(text).value == text


def test_the_same_lines_give_the_same_ids_and_equal_lines_different_ones() -> None:
    ids = [json.loads(made.value)["score_id"] for made in _prepare(SCORE, SCORE, {**SCORE, "value": 0.5})]
    again = [json.loads(made.value)["score_id"] for made in _prepare(SCORE, SCORE, {**SCORE, "value": 0.5})]
    assert ids == again
    assert len(set(ids)) == 3
    reordered = dict(reversed(SCORE.items()))
    assert json.loads(_prepare(reordered)[0].value)["score_id"] == ids[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"rubbish", "no JSON"),
        (b"[1]", "one JSON object"),
        (b'{"trace_id": "t"}', "session_id is missing"),
        (b'{"session_id": "s"}', "trace_id"),
        (b'{"session_id": "s", "trace_id": "t", "name": "m", "value": 1.4}', "decimal in [0, 1]"),
        (b'{"session_id": "s", "trace_id": "t", "status": "DONE"}', "status"),
        (b'{"session_id": "s", "trace_id": "t", "started_at": -1}', "started_at is -1"),
        (b'{"session_id": "\xff", "trace_id": "t"}', "no JSON"),
    ],
)
def test_what_ingest_would_refuse_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecord) as refused:
        Lines(Wire("json")).prepare(text)
    assert reason in str(refused.value)


def test_lines_keep_their_numbers_across_pieces_and_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CHUNK", 3)
    found = [line for piece in split(io.BytesIO(b"one\n\n  \nfour\r\nfive")) for line in piece]
    assert [(line.number, line.text.strip()) for line in found] == [(1, b"one"), (4, b"four"), (5, b"five")]


def test_gzip_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    for name, content in (("a.jsonl", b"line\n"), ("b.jsonl", gzip.compress(b"line\n"))):
        (tmp_path / name).write_bytes(content)
        stream, file = opened(tmp_path / name)
        with stream, file:
            assert [line.text for piece in split(stream) for line in piece] == [b"line"]
