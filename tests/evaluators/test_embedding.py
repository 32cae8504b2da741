"""Texts become vectors: by the small model in its wheel, or by an endpoint; each text once."""

import asyncio
import json
import logging
import math
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence

import pytest
from pydantic import SecretStr

from streams.errors import EndpointFailed, PartMissing
from streams.evaluators.embedding import MAX_CHARACTERS, Embedded, Embedder
from streams.evaluators.embedding_endpoint import EmbeddingEndpoint
from streams.evaluators.endpoint import Endpoint
from streams.evaluators.evaluation import Usage
from streams.evaluators.signals import dist
from streams.evaluators.wordllama import WordLlama
from tests.evaluators.scripted import Reply, refuses, serving


class Lengths:
    """Makes a vector of each text's length, and keeps what it was asked."""

    name, model = "lengths", "1"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def vectors(self, texts: Sequence[str]) -> Embedded:
        self.asked.append(list(texts))
        return Embedded(tuple((float(len(text)), 1.0) for text in texts), Usage(calls=1))

    async def probe(self) -> None:
        pass

    async def close(self) -> None:
        pass


def embed_all(embedder: Embedder, *asked: Sequence[str]) -> list[Embedded]:
    async def scene() -> list[Embedded]:
        return [await embedder.embed(texts) for texts in asked]

    return asyncio.run(scene())


def test_a_text_is_embedded_once_and_all_new_ones_at_once():
    model = Lengths()
    first, second, third = embed_all(Embedder(model), ["a", "bb", "a"], ["bb", "ccc"], ["a"])
    assert model.asked == [["a", "bb"], ["ccc"]]
    assert [vector[0] for vector in first.vectors] == [1.0, 2.0, 1.0]
    assert [vector[0] for vector in second.vectors] == [2.0, 3.0]
    assert [first.usage.calls, second.usage.calls, third.usage.calls] == [1, 1, 0]


def test_what_was_used_longest_ago_is_forgotten():
    model = Lengths()
    embed_all(Embedder(model, max_cached=2), ["a"], ["bb"], ["a"], ["ccc"], ["a"], ["bb"])
    assert model.asked == [["a"], ["bb"], ["ccc"], ["bb"]]


def test_a_long_text_is_embedded_by_its_start_and_that_is_told():
    model = Lengths()
    whole, cut = embed_all(Embedder(model), ["x" * MAX_CHARACTERS], ["x" * (MAX_CHARACTERS + 1)])
    assert [whole.cut, cut.cut] == [False, True]
    assert model.asked == [["x" * MAX_CHARACTERS]]


def wordllama(*texts: str) -> list[Sequence[float]]:
    async def scene() -> Embedded:
        embedder = Embedder(WordLlama())
        await embedder.probe()
        found = await embedder.embed(texts)
        await embedder.close()
        return found

    return list(asyncio.run(scene()).vectors)


def test_wordllama_knows_what_is_alike_without_any_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("it went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    dog, puppy, tax = wordllama("the dog barks", "a puppy is barking", "the tax return is due in April")
    assert [len(vector) for vector in (dog, puppy, tax)] == [256] * 3
    assert dist(dog, puppy) < 0.6 < dist(dog, tax)
    assert dist(dog, dog) == pytest.approx(0.0, abs=1e-6)


def test_wordllama_gives_the_same_vector_alone_and_in_company():
    texts = [f"sentence number {number} " * (number % 5 + 1) for number in range(40)]
    together = wordllama(*texts)
    assert all(dist(together[place], wordllama(texts[place])[0]) < 1e-6 for place in (0, 17, 39))


def test_a_text_without_words_has_no_direction():
    empty, strange = wordllama("", "\u200b\U000f0000")
    assert not any(empty)
    assert all(map(math.isfinite, strange))


def test_the_event_loop_goes_on_while_vectors_are_made():
    threads = set()

    async def scene() -> None:
        model = WordLlama()
        embed = model._embed
        model._embed = lambda texts: (threads.add(threading.current_thread()), embed(texts))[1]  # type: ignore[method-assign]
        await model.vectors(["a", "b"])
        await model.close()

    asyncio.run(scene())
    assert threads
    assert threading.main_thread() not in threads


def test_loading_it_leaves_logging_as_it_is():
    """In a process of its own: it happens at the first import."""
    program = (
        "import asyncio, logging\n"
        "from streams.evaluators.wordllama import WordLlama\n"
        "asyncio.run(WordLlama().vectors(['a']))\n"
        "assert logging.root.handlers == [], logging.root.handlers\n"
        "assert logging.root.level == logging.WARNING\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_wordllama_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(PartMissing, match=r"needs wordllama: pip install 'trajectory-gate\[embeddings\]'"):
        WordLlama()


def test_a_broken_installation_is_a_reason(monkeypatch):
    import wordllama as package

    def load(**_):
        raise FileNotFoundError("no weights")

    monkeypatch.setattr(package.WordLlama, "load", load)
    handlers = list(logging.root.handlers)
    with pytest.raises(EndpointFailed, match="wordllama cannot be loaded: FileNotFoundError: no weights"):
        asyncio.run(WordLlama().vectors(["a"]))
    assert logging.root.handlers == handlers


def embeddings(*vectors: Sequence[float], **usage: int) -> Reply:
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    data.reverse()  # an endpoint may answer in any order
    return Reply(200, json.dumps({"object": "list", "data": data, "model": "m", "usage": usage}))


def at_endpoint(url: str, *asked: Sequence[str]) -> list[Embedded]:
    async def scene() -> list[Embedded]:
        limit = asyncio.Semaphore(4)
        endpoint = Endpoint("embedding", url, SecretStr("sk-secret"), timeout_s=60.0, limit=limit, backoff_s=0.001)
        embedder = Embedder(EmbeddingEndpoint(endpoint, "m", price=3.0))
        try:
            return [await embedder.embed(texts) for texts in asked]
        finally:
            await embedder.close()

    return asyncio.run(scene())


def test_an_endpoint_is_asked_for_what_is_new_and_what_it_takes_is_counted():
    script = [embeddings([1.0, 0.0], [0.0, 1.0], prompt_tokens=500_000), embeddings([1.0, 1.0])]
    with serving(script) as server:
        first, second = at_endpoint(server.url, ["one", "two"], ["two", "three" * 8])
    assert [list(vector) for vector in first.vectors] == [[1.0, 0.0], [0.0, 1.0]]
    assert [list(vector) for vector in second.vectors] == [[0.0, 1.0], [1.0, 1.0]]
    assert [request.path for request in server.requests] == ["/v1/embeddings"] * 2
    assert [request.body["input"] for request in server.requests] == [["one", "two"], ["three" * 8]]
    assert server.requests[0].body["model"] == "m"
    assert first.usage == Usage(500_000, 0, 1, 1.5)
    assert second.usage == Usage(10, 0, 1, pytest.approx(0.00003))


def test_many_texts_are_asked_for_in_parts():
    def script(request):
        return embeddings(*([float(text)] for text in request.body["input"]))

    with serving(script) as server:
        (found,) = at_endpoint(server.url, [str(number) for number in range(1, 151)])
    assert [vector[0] for vector in found.vectors] == [float(number) for number in range(1, 151)]
    assert [len(request.body["input"]) for request in server.requests] == [64, 64, 22]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (embeddings([1.0]), "answered what cannot be used: it holds 1 embeddings for 2 texts"),
        (embeddings([1.0], []), "it holds an embedding that is empty, or with a number that is not finite"),
        (embeddings([1.0], [math.nan]), "it holds an embedding that is empty, or with a number that is not finite"),
        (Reply(200, "[]"), "answered what cannot be used: it holds no embeddings"),
        (refuses(404, "no such model"), "(404): no such model; see embedding_model and embedding_base_url"),
        (refuses(401, "bad key"), "refused the key (401): bad key; see embedding_api_key_file"),
    ],
)
def test_what_an_endpoint_answers_is_checked(reply, reason):
    with serving([reply]) as server, pytest.raises(EndpointFailed) as failed:
        at_endpoint(server.url, ["one", "two"])
    assert reason in str(failed.value)
