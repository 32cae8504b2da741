"""An endpoint is asked within bounds, left alone when it wants to be, and its key is told to nobody."""

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import SecretStr

from streams.errors import EndpointFailed, PartMissing
from streams.evaluators.endpoint import Endpoint
from streams.evaluators.evaluation import Subject
from streams.evaluators.judge import ModelJudge
from tests.evaluators.judging import KEY, judged, trace, with_endpoint
from tests.evaluators.scripted import HANG, answers, refuses, serving

GOOD = answers(confidence=0.8, reason="r")


async def ask(endpoint: Endpoint) -> None:
    await ModelJudge(endpoint, "m").probe()


@pytest.mark.parametrize("status", [429, 503])
def test_an_endpoint_is_left_alone_for_as_long_as_it_wants(status):
    with serving([refuses(status, "busy", retry_after="1.2"), GOOD]) as server:
        assert judged(server.url, "confidence").value == 0.8
    first, second = server.requests
    assert second.at - first.at >= 1.2


def test_retry_after_may_be_a_date():
    def script(request):
        if len(server.requests) > 1:
            return GOOD
        when = datetime.now(UTC) + timedelta(seconds=2)  # written in whole seconds, so a second or more
        return refuses(429, "busy", retry_after=format_datetime(when, usegmt=True))

    with serving(script) as server:
        assert judged(server.url, "confidence").value == 0.8
    first, second = server.requests
    assert second.at - first.at >= 0.9


def test_it_means_all_requests():
    async def first_fails(endpoint: Endpoint) -> None:
        failing = asyncio.create_task(ask(endpoint))
        while not endpoint._quiet_until:  # noqa: ASYNC110  (there is nothing to wait for but the state itself)
            await asyncio.sleep(0.01)
        await asyncio.gather(failing, ask(endpoint))

    with serving([refuses(429, "busy", retry_after="1.5"), GOOD]) as server:
        asyncio.run(with_endpoint(server.url, first_fails))
    assert len(server.requests) == 3
    assert min(request.at for request in server.requests[1:]) - server.requests[0].at >= 1.5


def test_a_wait_that_is_too_long_is_a_reason():
    async def use(endpoint: Endpoint) -> list[str]:
        told = []
        for _ in range(2):
            with pytest.raises(EndpointFailed) as failed:
                await ask(endpoint)
            told.append(str(failed.value))
        return told

    with serving([refuses(429, "come back tomorrow", retry_after="3600")]) as server:
        told = asyncio.run(with_endpoint(server.url, use))
    assert len(server.requests) == 1
    assert all("wants to be left alone for another 3" in each for each in told)


def test_requests_at_once_are_bounded():
    lock, running, most, two = threading.Lock(), 0, 0, threading.Event()

    def script(request):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 2:
                two.set()
        assert two.wait(60)
        with lock:
            running -= 1
        return GOOD

    async def use(endpoint: Endpoint) -> None:
        await asyncio.gather(*(ask(endpoint) for _ in range(8)))

    with serving(script) as server:
        asyncio.run(with_endpoint(server.url, use, limit=asyncio.Semaphore(2)))
    assert (len(server.requests), most) == (8, 2)


def test_waiting_for_its_turn_is_not_the_endpoints_time(monkeypatch):
    events = []
    timeout = asyncio.timeout

    class Limit(asyncio.Semaphore):
        async def acquire(self):
            events.append("its turn")
            return await super().acquire()

    def counted(delay):
        events.append(delay)
        return timeout(delay)

    monkeypatch.setattr(asyncio, "timeout", counted)
    with serving([GOOD]) as server:
        asyncio.run(with_endpoint(server.url, ask, limit=Limit(1), timeout_s=61.0))
    assert events[:2] == ["its turn", 61.0]


@pytest.mark.parametrize(
    ("reply", "doubted"),
    [
        (refuses(500, "x"), True),
        (refuses(401, "x"), True),
        (HANG, True),
        (refuses(413, "x"), False),
        (refuses(429, "x"), False),
        (answers(), False),
    ],
)
def test_an_endpoint_is_in_doubt_unless_it_was_only_the_request(reply, doubted):
    downs = []

    async def use(endpoint: Endpoint) -> None:
        judge = ModelJudge(endpoint, "m")
        assert (await judge.judge("confidence", Subject(trace()))).value is None

    with serving([reply]) as server:
        timeout_s = 0.2 if reply is HANG else 60.0
        asyncio.run(with_endpoint(server.url, use, on_down=lambda: downs.append(1), timeout_s=timeout_s))
    assert bool(downs) is doubted


def test_a_probe_that_hears_nothing_is_not_repeated():
    async def use(endpoint: Endpoint) -> None:
        with pytest.raises(EndpointFailed, match=r"did not answer within 0.4 s \(judge_timeout_s\)$"):
            await ask(endpoint)

    with serving([HANG]) as server:
        asyncio.run(with_endpoint(server.url, use, timeout_s=0.4))
    assert len(server.requests) <= 1


def test_the_key_is_sent_and_told_to_nobody(caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    said = []

    async def use(endpoint: Endpoint) -> None:
        judge = ModelJudge(endpoint, "m")
        with pytest.raises(EndpointFailed) as failed:
            await judge.probe()
        said.extend([str(failed.value), repr(failed.value), repr(endpoint), repr(judge), repr(vars(endpoint))])

    for reply in (refuses(401, f"Incorrect API key provided: {KEY}. {'x' * 250} {KEY}"), HANG):
        with serving([reply]) as server:
            asyncio.run(with_endpoint(server.url, use, timeout_s=5.0 if reply is HANG else 60.0))
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    with serving([refuses(401, "no key")]) as server:
        keyless = Endpoint("judge", server.url, None, timeout_s=60.0, limit=asyncio.Semaphore(1))

        async def without_key() -> None:
            await use(keyless)
            await keyless.close()

        asyncio.run(without_key())
    assert server.requests[0].headers["authorization"] == "Bearer none"
    shown = "\n".join([*said, caplog.text, *(str(vars(record)) for record in caplog.records)])
    assert "(hidden)" in shown
    assert "sk-a" not in shown
    assert caplog.records


def test_the_package_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(PartMissing, match=r"needs openai: pip install 'trajectory-gate\[judge\]'"):
        Endpoint("judge", "http://127.0.0.1:1/v1", SecretStr(KEY), timeout_s=1.0, limit=asyncio.Semaphore(1))
