"""What leaves the process: valid for its reader, redacted, short enough, and never an exception into the agent."""

import asyncio
import json
from typing import Any

import pytest

from streams.client import Gate, Redaction, ScoreSource, TraceRecorder
from streams.client.records import encode, json_text, score_fields
from streams.errors import InvalidRecord, TooLarge
from streams.wire import Wire

WIRE = Wire(max_bytes=20_000)
TRACE = {"trace_id": "t", "session_id": "s", "name": "n", "status": "COMPLETED", "started_at": 1}


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


def recorded(**fields: Any) -> TraceRecorder:
    return TraceRecorder(offer=lambda _: None, submit=None, session_id="s", name="n", **fields)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ({"a": [1, None, True]}, '{"a":[1,null,true]}'),
        ({1: 2}, '{"1":2}'),
        (float("nan"), "null"),
        ({"when": object}, json.dumps({"when": repr(object)}, separators=(",", ":"))),
        (Broken(), '"<Broken>"'),
        (2**70, str(2**70)),
    ],
)
def test_any_value_becomes_json_text(value: object, text: str) -> None:
    assert json_text(value) == text


def test_values_json_has_no_words_for_are_told_all_the_same() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value in ("\ud800", loop, {"deep": Broken(), "big": 2**70}):
        assert isinstance(json.loads(json_text(value)), str | dict)


def test_a_recorded_trace_is_valid_and_its_spans_nest() -> None:
    async def scene() -> TraceRecorder:
        with recorded(input={"task": "x"}) as trace:
            with trace.span("plan", "CHAIN") as outer, trace.span("search", "TOOL", input="q") as inner:
                inner.output = [1, 2]

            async def concurrent(name: str) -> None:
                with trace.span(name, "TOOL"):
                    await asyncio.sleep(0)
                    with trace.span(f"{name}-child"):
                        await asyncio.sleep(0)

            await asyncio.gather(concurrent("a"), concurrent("b"))
            assert inner.parent_span_id == outer.span_id
        return trace

    trace = asyncio.run(scene())
    found = WIRE.read_trace(encode(WIRE, "Trace", trace.fields(), None).value, None, 0)
    by_id = {span["span_id"]: span["name"] for span in found.whole["spans"]}
    assert {span["name"]: by_id.get(span["parent_span_id"]) for span in found.whole["spans"]} == {
        "plan": None,
        "search": "plan",
        "a": None,
        "a-child": "a",
        "b": None,
        "b-child": "b",
    }
    assert found.whole["input"] == '{"task":"x"}'
    assert {span["status"] for span in found.whole["spans"]} == {"OK"}


def test_an_exception_marks_span_and_trace_and_goes_on_its_way() -> None:
    published: list[TraceRecorder] = []
    trace = TraceRecorder(offer=published.append, submit=None, session_id="s", name="n")
    with pytest.raises(ZeroDivisionError), trace, trace.span("compute", "TOOL"):
        _ = 1 / 0
    assert published == [trace]
    found = WIRE.read_trace(encode(WIRE, "Trace", trace.fields(), None).value, None, 0)
    assert found.trace.status == "ERROR"
    (span,) = found.whole["spans"]
    assert (span["status"], span["error"]) == ("ERROR", "ZeroDivisionError: division by zero")


def test_a_trace_too_large_is_shortened_rather_than_lost() -> None:
    spans = [{"span_id": f"{number}", "input": "x" * 5000} for number in range(8)]
    found = WIRE.read_trace(
        encode(WIRE, "Trace", {**TRACE, "spans": spans, "input": "y" * 50_000}, None).value, None, 0
    )
    assert found.whole["input"].endswith('(shortened)"')
    assert len(found.whole["spans"]) == 8
    many = [{"span_id": f"{number}", "input": "x" * 900} for number in range(80)]
    assert WIRE.read_trace(encode(WIRE, "Trace", {**TRACE, "spans": many}, None).value, None, 0).whole["spans"] == []
    with pytest.raises(TooLarge):
        encode(WIRE, "Trace", {**TRACE, "tags": ["z" * 30_000]}, None)


@pytest.mark.parametrize(
    ("value", "kind", "read"),
    [(0.25, "NUMERIC", 0.25), (True, "BOOLEAN", 1.0), ("good", "CATEGORICAL", None), (None, "NUMERIC", None)],
)
def test_scores_of_every_kind(value: Any, kind: str, read: float | None) -> None:
    fields = score_fields("s", "m", value, "t", {"threshold": 0.5, "flagged_traces": ["t"], "reason": "because"})
    assert fields["data_type"] == kind
    score = WIRE.read_score(encode(WIRE, "Score", fields, None).value, None, 0).score
    assert (score.value, score.threshold, score.flagged_traces, score.reason) == (read, 0.5, ("t",), "because")


@pytest.mark.parametrize("source", [*ScoreSource, "ANNOTATION"])
def test_scores_of_people_and_programs(source: str) -> None:
    fields = score_fields("s", "outcome_correct", False, None, {"source": source, "score_id": "mine"})
    score = WIRE.read_score(encode(WIRE, "Score", fields, None).value, None, 0).score
    assert (score.source, score.score_id, score.trace_id, score.value) == (source, "mine", None, 0.0)


SECRETS = (
    "hunter2",
    "sk-abcdefghijklmnop1234",
    "ada@example.org",
    "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl",
    "4111 1111 1111 1111",
)


def test_nothing_secret_leaves_wherever_it_stands() -> None:
    class Login:
        def __repr__(self) -> str:
            return "Login(sk-abcdefghijklmnop1234)"

    def fail(trace: TraceRecorder) -> None:
        with trace, trace.span("call ada@example.org", "TOOL", input='{"password": "hunter2", "n": 1}') as span:
            trace.input = {"Password": "hunter2", "nested": [{"x-api-key": ["hunter2"]}], "text": f"card {SECRETS[4]}"}
            trace.metadata = {"ada@example.org": 1, "url": "https://ada:hunter2@example.org/"}
            trace.tags = ["ada@example.org"]
            span.output = Login()
            span.model_parameters = {"authorization": "hunter2"}
            raise ValueError(f"Bearer {SECRETS[3]} of ada@example.org")

    trace = recorded(user_id="ada@example.org")
    with pytest.raises(ValueError, match="ada"):
        fail(trace)
    value = encode(WIRE, "Trace", trace.fields(), Redaction()).value
    assert [secret for secret in SECRETS if secret.encode() in value] == []
    assert json.loads(json.loads(value)["spans"][0]["input"]) == '{"password":"[redacted]","n":1}'
    score = score_fields("s", "m", "ada@example.org", "t", {"reason": "told ada@example.org"})
    assert b"ada@" not in encode(WIRE, "Score", score, Redaction()).value


def test_a_redaction_of_ones_own() -> None:
    only = Redaction(fields=["plan"], patterns=[r"room \d+"])
    value = encode(
        WIRE, "Trace", {**TRACE, "input": {"plan": 1, "at": "room 12"}, "output": "ada@example.org"}, only
    ).value
    assert json.loads(value)["input"] == '{"plan":"[redacted]","at":"[redacted]"}'
    assert json.loads(value)["output"] == '"ada@example.org"'


def test_what_a_redaction_refuses_or_fails_on_is_not_sent_and_is_counted() -> None:
    def withhold(fields: dict[str, Any]) -> dict[str, Any] | None:
        return None if "score_id" in fields else fields

    def fail(_: dict[str, Any]) -> None:
        raise KeyError("sk-abcdefghijklmnop1234")

    async def scene() -> None:
        async with Gate(bootstrap_servers="127.0.0.1:9", redact=withhold, flush_s=0.1) as gate:
            assert await gate.submit_score("s", "m", 0.5) is False
            assert gate.counts.withheld == 1
        async with Gate(bootstrap_servers="127.0.0.1:9", redact=fail, flush_s=0.1) as gate:
            async with gate.trace("s"):
                pass
            assert (gate.counts.refused, gate.counts.waiting) == (1, 0)

    asyncio.run(scene())


def test_what_is_not_valid_is_counted_or_raised_as_asked() -> None:
    async def scene() -> None:
        async with Gate(bootstrap_servers="127.0.0.1:9", flush_s=0.1) as gate:
            assert await gate.submit_score("s", "m", 1.5) is False
            assert gate.offer_trace({"trace_id": "t"}) is False
            assert gate.counts.refused == 2
        async with Gate(bootstrap_servers="127.0.0.1:9", flush_s=0.1, strict=True) as gate:
            with pytest.raises(InvalidRecord, match="decimal"):
                await gate.submit_score("s", "m", 1.5)

    asyncio.run(scene())
