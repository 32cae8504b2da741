"""From settings to an evaluator: which metric goes where, who is asked, and what happens when nobody answers."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from streams.errors import BadSettings, PartMissing
from streams.evaluators.build import make_evaluator
from streams.evaluators.evaluation import Evaluator, Subject, Verdict
from streams.evaluators.health import HealthChange
from streams.evaluators.metrics import METRICS, MetricKind
from streams.settings import Settings, load
from tests.evaluators.judging import KEY, trace
from tests.evaluators.scripted import Reply, answers, refuses, serving

READY = answers(ready=True)
GOOD = answers(confidence=0.8, reason="r")
WAIT_S = 60.0


def using(settings: Settings, use: Callable[[Evaluator], Awaitable[Any]]) -> Any:
    async def scene() -> Any:
        evaluator = make_evaluator(settings)
        try:
            return await use(evaluator)
        finally:
            await evaluator.close()

    return asyncio.run(scene())


def model_at(url: str, **more: Any) -> Settings:
    return Settings(judge="openai", judge_base_url=url, judge_model="m", judge_api_key=KEY, **more)


def test_without_any_key_rules_judge_and_texts_are_compared():
    async def use(evaluator: Evaluator) -> dict[str, Verdict]:
        earlier = trace(output=json.dumps("It rains."))
        subject = Subject(trace(), (earlier,))
        return {metric: await evaluator.evaluate(metric, subject) for metric in METRICS}

    found = using(Settings(), use)
    assert {name for name, verdict in found.items() if verdict.value is not None} == {
        "tool_correctness",
        "argument_correctness",
        "step_efficiency",
        "confidence",
        "coherence",
        "loop_detection",
    }
    assert {verdict.metadata["judge"] for name, verdict in found.items() if METRICS[name].kind is MetricKind.JUDGE} == {
        "rules"
    }
    assert found["coherence"].metadata["embedder"] == "wordllama"
    assert found["coherence"].value == pytest.approx(0.137, abs=0.01)
    assert found["loop_detection"].value == 0.0  # the same words again
    assert "is about a session" in found["agent_reliability"].reason


def test_a_metric_that_nobody_knows_is_a_failed_verdict():
    verdict = using(Settings(), lambda evaluator: evaluator.evaluate("charm", Subject(trace())))
    assert verdict.value is None
    assert verdict.reason.startswith("there is no metric charm; known are task_completion, ")


def test_a_model_is_probed_once_and_then_asked():
    async def use(evaluator: Evaluator) -> list[Verdict]:
        return [await evaluator.evaluate("confidence", Subject(trace()), model=model) for model in (None, "other")]

    with serving([READY, GOOD]) as server:
        first, second = using(model_at(server.url, judge_input_price=1.0), use)
    assert [request.body["model"] for request in server.requests] == ["m", "m", "other"]
    assert (first.value, first.usage.cost, second.metadata["model"]) == (0.8, pytest.approx(0.0001), "other")


def test_an_endpoint_for_embeddings():
    def script(request):
        data = [
            {"object": "embedding", "index": at, "embedding": [1.0, float(at)]}
            for at in range(len(request.body["input"]))
        ]
        return Reply(200, json.dumps({"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 7}}))

    with serving(script) as server:
        settings = Settings(embedder="openai", embedding_base_url=server.url, embedding_model="e", embedding_price=2.0)
        verdict = using(settings, lambda evaluator: evaluator.evaluate("coherence", Subject(trace())))
    assert (verdict.value, verdict.usage.input_tokens) == (0.7071, 7)
    assert (verdict.metadata["embedder"], verdict.metadata["model"]) == ("openai", "e")
    assert verdict.metadata["coherence_gap"] == 0.2929
    assert server.requests[1].body["input"] == ["What is the weather in Oslo?", "It rains."]


def test_nothing_to_compare_asks_nobody():
    settings = Settings(embedder="openai", embedding_base_url="http://127.0.0.1:1/v1", embedding_model="e")

    async def use(evaluator: Evaluator) -> list[float | None]:
        subject = Subject(trace(output=None))
        return [(await evaluator.evaluate(metric, subject)).value for metric in ("coherence", "loop_detection")]

    assert using(settings, use) == [1.0, 1.0]


def test_vectors_of_unequal_lengths_are_a_failed_verdict():
    def script(request):
        data = [{"index": at, "embedding": [1.0] * (at + 1)} for at in range(len(request.body["input"]))]
        return Reply(200, json.dumps({"data": data}))

    with serving(script) as server:
        settings = Settings(embedder="openai", embedding_base_url=server.url, embedding_model="e")
        verdict = using(settings, lambda evaluator: evaluator.evaluate("coherence", Subject(trace())))
    assert (verdict.value, verdict.reason) == (None, "no embeddings: vectors of 1 and of 2 numbers have no distance")


def test_a_judge_that_is_down_is_degraded_until_it_is_back():
    up = False
    told: list[HealthChange] = []

    async def use(evaluator: Evaluator) -> tuple[Verdict, Verdict, Verdict]:
        nonlocal up
        back = asyncio.Event()

        def tell(change: HealthChange) -> None:
            told.append(change)
            if change.healthy:
                back.set()

        evaluator.health.listen(tell)
        first, second = [await evaluator.evaluate("confidence", Subject(trace())) for _ in range(2)]
        other = await evaluator.evaluate("coherence", Subject(trace()))
        assert other.value is not None  # the embedder is well
        assert set(evaluator.health.degraded) == {"judge"}
        up = True
        await asyncio.wait_for(back.wait(), WAIT_S)
        return first, second, await evaluator.evaluate("confidence", Subject(trace()))

    def script(request):
        return (GOOD if "confidence" in request.system else READY) if up else refuses(401, "no such key")

    with serving(script) as server:
        first, second, third = using(model_at(server.url), use)
    assert first.value is None
    assert "refused the key (401): no such key; see judge_api_key_file" in first.reason
    assert second.reason == first.reason
    assert third.value == 0.8
    assert [change.healthy for change in told] == [False, True]


def test_a_judge_that_goes_down_later_is_degraded_as_well():
    up = True
    told: list[HealthChange] = []

    async def use(evaluator: Evaluator) -> list[Verdict]:
        nonlocal up
        evaluator.health.listen(told.append)
        found = []
        for answering in (True, False, False, False):
            up = answering
            found.append(await evaluator.evaluate("confidence", Subject(trace())))
        return found

    def script(request):
        return (GOOD if "confidence" in request.system else READY) if up else refuses(403, "blocked")

    with serving(script) as server:
        found = using(model_at(server.url), use)
        asked = len(server.requests)
    assert [verdict.value for verdict in found] == [0.8, None, None, None]
    assert [change.healthy for change in told] == [False]
    assert asked == 4  # a probe, a judgement, a judgement that failed, a probe: nothing while it is degraded


def test_judge_and_embedder_at_one_address_share_what_it_is_sent_at_once():
    url = "http://127.0.0.1:1/v1"

    async def use(evaluator: Any) -> tuple[Any, Any]:
        return evaluator._judge._endpoint._limit, evaluator._embedder._model._endpoint._limit

    more = {"embedder": "openai", "embedding_model": "e"}
    judge, embedder = using(model_at(url, embedding_base_url=url, **more), use)
    assert judge is embedder
    judge, embedder = using(model_at(url, embedding_base_url=f"{url}/other", **more), use)
    assert judge is not embedder


def test_a_key_comes_from_a_file(tmp_path, caplog):
    file = tmp_path / "key"
    file.write_text("sk-from-file\n")
    file.chmod(0o644)
    with serving([READY, GOOD]) as server:
        settings = model_at(server.url, judge_api_key_file=file)
        using(settings, lambda evaluator: evaluator.evaluate("confidence", Subject(trace())))
    assert server.requests[1].headers["authorization"] == "Bearer sk-from-file"
    assert "can be read by every user" in caplog.text
    assert "sk-from-file" not in caplog.text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"judge_api_key_file": Path("/nowhere/key")}, "judge_api_key_file = /nowhere/key: No such file"),
        ({"judge_api_key": "sk-\u00e9\u00e8"}, "judge_api_key holds characters that no HTTP header can carry"),
    ],
)
def test_a_key_that_cannot_be_used_is_told_before_anything_starts(more, message):
    settings = Settings(**{"judge": "openai", "judge_model": "m", **more})
    with pytest.raises(BadSettings, match=message) as told:
        make_evaluator(settings)
    assert "sk-" not in str(told.value)


def test_keys_and_addresses_with_logins_are_never_shown():
    environ = {
        "TGATE_JUDGE_API_KEY": KEY,
        "TGATE_EMBEDDING_API_KEY": KEY,
        "TGATE_JUDGE": "openai",
        "TGATE_JUDGE_MODEL": "m",
    }
    assert KEY not in repr(load(environ=environ))
    with pytest.raises(BadSettings) as told:
        load(environ={**environ, "TGATE_JUDGE_BASE_URL": "https://me:hunter2@host/v1", "TGATE_GATE_WINDOW": "0"})
    assert "judge_base_url = 'https://(hidden)@host/v1' (TGATE_JUDGE_BASE_URL)" in str(told.value)
    assert "hunter2" not in str(told.value)
    assert KEY not in str(told.value)
    shown = subprocess.run(
        [sys.executable, "-m", "streams", "settings", "--json"], check=True, capture_output=True, text=True, env=environ
    )
    assert KEY not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"TGATE_JUDGE": "openai"}, "judge_model is empty; judge = openai needs the name of a model"),
        ({"TGATE_EMBEDDER": "openai"}, "embedding_model is empty; embedder = openai needs the name of a model"),
        ({"TGATE_JUDGE_BASE_URL": "api.openai.com"}, "judge_base_url = 'api.openai.com' "),
        ({"TGATE_JUDGE_BASE_URL": "https://host/v1?key=x"}, "judge_base_url = 'https://host/v1.key=x' "),
        ({"TGATE_JUDGE_TEMPERATURE": "3"}, r"judge_temperature = '3' .*; allowed: 0 to 2 or none"),
        ({"TGATE_JUDGE": "human"}, r"judge = 'human' .*; allowed: rules, openai"),
    ],
)
def test_settings_that_do_not_fit_say_so(environ, message):
    with pytest.raises(BadSettings, match=message):
        load(environ=environ)


@pytest.mark.parametrize(
    ("package", "settings", "extra"),
    [
        ("openai", {"judge": "openai", "judge_model": "m"}, "judge"),
        ("openai", {"embedder": "openai", "embedding_model": "m"}, "judge"),
        ("wordllama", {}, "embeddings"),
    ],
)
def test_an_extra_that_is_not_installed_is_named(monkeypatch, package, settings, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PartMissing, match=rf"needs {package}: pip install 'trajectory-gate\[{extra}\]'"):
        make_evaluator(Settings(**settings))


def test_who_needs_no_model_loads_none():
    """In a process of its own, where nobody has imported anything yet."""
    program = (
        "import sys\n"
        "from streams.evaluators.build import make_evaluator\n"
        "from streams.settings import Settings\n"
        "make_evaluator(Settings())\n"
        "assert not {'openai', 'wordllama', 'numpy', 'httpx2'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
