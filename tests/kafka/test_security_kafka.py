"""TLS, logins and least rights on Apache Kafka: the whole pipeline works with them, and nothing beyond them does."""

import asyncio
import json
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    for_code,
)
from aiokafka.protocol.fetch import FetchRequest

from streams import admin
from streams.engine.changelog import transactional_id
from streams.engine.producing import discard
from streams.security import connection
from streams.tables import BREAKERS, SESSIONS
from streams.topics import BY_ROLE, DETECTION, EVALUATORS
from tests.kafka.secured import (
    APP_ID,
    MECHANISMS,
    NAMES,
    ROLES,
    SCRAM_OF,
    Secured,
    password,
    principal,
    secret,
    secured,
    token,
)

pytestmark = pytest.mark.kafka

PATIENCE_S = 120.0
FAILED, MISUSED = 1, 2


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("secured")) as running:
        made = running.tgate("admin", "topics", "create")
        assert made.returncode == 0, made.stdout + made.stderr
        yield running


def story(session: str) -> str:
    """Return the lines of a session that falls back once."""
    values = enumerate((0.6, 0.2, 0.2), 1)
    scores = [
        {"session_id": session, "trace_id": f"{session}-{number}", "name": "task_completion", "value": value}
        for number, value in values
    ]
    traces = [{"session_id": session, "trace_id": score["trace_id"]} for score in scores]
    return "".join(json.dumps(line) + "\n" for line in [*traces, *scores])


def notices(broker: Secured, session: str) -> list[dict[str, Any]]:
    read = broker.tgate("agent", "notices", "--from-start", "--json")
    assert read.returncode == 0, read.stderr
    return [notice for line in read.stdout.splitlines() if (notice := json.loads(line))["session_id"] == session]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_whole_pipeline_and_nothing_secret_in_its_log(broker: Secured, tmp_path: Path, mechanism: str) -> None:
    """Every client of the worker logs in, and at DEBUG no password and no token reaches the log."""
    environ = broker.environ("worker", sasl_mechanism=mechanism, log_level="DEBUG", tier1_metrics="task_completion")
    session, written = f"by-{mechanism}", tmp_path / "worker.log"
    with written.open("wb") as log:
        worker = subprocess.Popen([sys.executable, "-m", "streams", "worker"], env=environ, stdout=log, stderr=log)
    try:
        sent = broker.tgate("agent", "publish", "-", told=story(session))
        assert sent.returncode == 0, sent.stderr
        deadline = time.monotonic() + PATIENCE_S
        while not (found := notices(broker, session)):
            assert worker.poll() is None, written.read_text()[-2000:]
            assert time.monotonic() < deadline, written.read_text()[-2000:]
    finally:
        worker.terminate()
        code = worker.wait(PATIENCE_S)
    assert code == 0
    reset = broker.tgate("operator", "breaker", "reset", "default")
    assert reset.returncode == 0, reset.stderr
    assert [notice["signatures"] for notice in found] == [["regression:task_completion"]]
    said = written.read_text()
    assert "SaslAuthenticateRequest" in said
    for each in secrets_of("worker", broker):
        assert each not in said
    assert not [line for line in said.splitlines() if "AuthorizationFailed" in line]


def secrets_of(role: str, broker: Secured) -> list[str]:
    plain = password(principal(role))
    tokens = [path.read_text().strip() for path in broker.directory.glob(f"{role}.token")]
    return [
        plain,
        b64encode(plain.encode()).decode().rstrip("="),
        *tokens,
        *(part for t in tokens for part in t.split(".") if part),
    ]


def test_people_can_do_their_work(broker: Secured) -> None:
    """What tgate does for an operator, over the same login: checks, reports, state, offsets by time."""
    for arguments in (
        ("topics", "check"),
        ("reports", "--since", "1h"),
        ("journal", "--from-start"),
        ("breaker", "show"),
    ):
        done = broker.tgate("operator", *arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_logs_in(broker: Secured, mechanism: str) -> None:
    role = next((role for role, scram in SCRAM_OF.items() if scram == mechanism), "worker")
    found = asyncio.run(_find(broker, role, sasl_mechanism=mechanism))
    assert found[NAMES["eval-scores"]] == 2


async def _find(broker: Secured, role: str, **more: str) -> dict[str, int | None]:
    settings = broker.settings(role, **more)
    found = await admin.find(connection(settings), settings)
    return {item.topic.name: item.partitions for item in found.values()}


def test_each_role_sees_its_topics_only(broker: Secured) -> None:
    seen = {
        role: {name for name, partitions in asyncio.run(_find(broker, role)).items() if partitions is not None}
        for role in (*ROLES, "stranger")
    }
    everything = set(NAMES.values())
    assert seen["admin"] == seen["operator"] == everything
    for role, topics in {
        "worker": DETECTION,
        "evaluators": EVALUATORS,
        "agent": ["trace-ingested", "eval-scores", "notices", "turn-settled", "turn-reports"],
        "evaluator": ["eval-requests", "traces", "eval-scores"],
        "stranger": [],
    }.items():
        assert seen[role] == {NAMES[topic] for topic in topics}


async def _write(broker: Secured, role: str, topic: str) -> None:
    async with AIOKafkaProducer(**connection(broker.settings(role)).options(), acks="all") as producer:
        await producer.send_and_wait(NAMES[topic], b"{}", partition=0)


async def _read(broker: Secured, role: str, topic: str) -> None:
    """Fetch from the one broker there is, whether or not it tells this role that the topic is there."""
    client = AIOKafkaClient(**connection(broker.settings(role)).options())
    await client.bootstrap()
    try:
        request = FetchRequest(100, 0, 1024, 1, [(NAMES[topic], [(0, 0, 1024)])], rack_id="")
        answer = await client.send(client.get_random_node(), request)
        ((_, ((_, error, *_),)),) = answer.topics
        if error:
            raise for_code(error)(topic)
    finally:
        await client.close()


async def _join(broker: Secured, role: str, topic: str, group: str) -> None:
    consumer = AIOKafkaConsumer(NAMES[topic], **connection(broker.settings(role)).options(), group_id=group)
    try:
        await consumer.start()
        await asyncio.wait_for(consumer.getmany(timeout_ms=3000), 30)
    finally:
        await consumer.stop()


async def _fence(broker: Secured, role: str, table: str) -> None:
    name = transactional_id(APP_ID, table, 0)
    producer = AIOKafkaProducer(**connection(broker.settings(role)).options(), transactional_id=name)
    try:
        await producer.start()
    finally:
        await discard(producer)


@pytest.mark.parametrize(
    ("role", "attempt", "refused"),
    [
        ("agent", lambda at: _read(at, "agent", "session-log"), TopicAuthorizationFailedError),
        ("agent", lambda at: _write(at, "agent", "notices"), TopicAuthorizationFailedError),
        ("agent", lambda at: _write(at, "agent", "session-log"), TopicAuthorizationFailedError),
        ("agent", lambda at: _join(at, "agent", "notices", APP_ID), GroupAuthorizationFailedError),
        ("agent", lambda at: _fence(at, "agent", SESSIONS), TransactionalIdAuthorizationFailed),
        ("evaluator", lambda at: _write(at, "evaluator", "notices"), TopicAuthorizationFailedError),
        ("evaluator", lambda at: _read(at, "evaluator", "notices"), TopicAuthorizationFailedError),
        (
            "evaluator",
            lambda at: _join(at, "evaluator", "eval-requests", f"{APP_ID}-evaluators"),
            GroupAuthorizationFailedError,
        ),
        ("evaluators", lambda at: _write(at, "evaluators", "notices"), TopicAuthorizationFailedError),
        ("evaluators", lambda at: _write(at, "evaluators", "session-log"), TopicAuthorizationFailedError),
        ("evaluators", lambda at: _join(at, "evaluators", "session-log", APP_ID), GroupAuthorizationFailedError),
        ("evaluators", lambda at: _fence(at, "evaluators", SESSIONS), TransactionalIdAuthorizationFailed),
        ("operator", lambda at: _write(at, "operator", "notices"), TopicAuthorizationFailedError),
        ("operator", lambda at: _write(at, "operator", "session-log"), TopicAuthorizationFailedError),
        ("operator", lambda at: _fence(at, "operator", BREAKERS), TransactionalIdAuthorizationFailed),
        ("admin", lambda at: _read(at, "admin", "traces"), TopicAuthorizationFailedError),
        ("admin", lambda at: _write(at, "admin", "eval-scores"), TopicAuthorizationFailedError),
        ("worker", lambda at: _write(at, "worker", "eval-scores"), TopicAuthorizationFailedError),
        ("worker", lambda at: _read(at, "worker", "notices"), TopicAuthorizationFailedError),
        ("stranger", lambda at: _write(at, "stranger", "eval-scores"), TopicAuthorizationFailedError),
    ],
)
def test_what_a_role_is_refused(
    broker: Secured, role: str, attempt: Callable[[Secured], Awaitable[None]], refused: type[Exception]
) -> None:
    with pytest.raises(refused):
        asyncio.run(attempt(broker))


def test_what_agents_and_evaluators_are_allowed(broker: Secured) -> None:
    asyncio.run(_join(broker, "agent", "notices", f"{APP_ID}-agent-1"))
    asyncio.run(_join(broker, "evaluator", "eval-requests", f"{APP_ID}-evaluator-1"))
    asyncio.run(_read(broker, "evaluator", "traces"))
    asyncio.run(_write(broker, "evaluator", "eval-scores"))


def test_a_worker_creates_no_topics(broker: Secured) -> None:
    settings = broker.settings("worker").model_copy(update={"topic_names": {role: f"other-{role}" for role in BY_ROLE}})
    answers = asyncio.run(admin.create(connection(settings), settings))
    assert set(answers.values()) == {"refused: Authorization failed."}


@pytest.mark.parametrize("command", [("worker",), ("notices", "--from-start"), ("publish", "-"), ("topics", "check")])
def test_a_refused_login_is_one_sentence(broker: Secured, command: tuple[str, ...]) -> None:
    wrong = str(secret(broker.directory / "wrong.password", "pw-wrong-77d1"))
    done = broker.tgate("agent", *command, told=story("x"), sasl_password_file=wrong)
    assert_one_sentence(done, "refused the login of tgate-agent by SCRAM-SHA-256")
    assert "pw-wrong" not in done.stdout + done.stderr


def test_an_unknown_user_is_refused(broker: Secured) -> None:
    done = broker.tgate("agent", "topics", "list", sasl_username="nobody", sasl_mechanism="PLAIN")
    assert_one_sentence(done, "refused the login of nobody by PLAIN")


def test_a_token_that_has_expired_is_refused(broker: Secured) -> None:
    old = token(principal("agent"), valid_s=-600)
    done = broker.tgate(
        "agent",
        "topics",
        "list",
        sasl_mechanism="OAUTHBEARER",
        sasl_token_file=str(secret(broker.directory / "old", old)),
    )
    assert_one_sentence(done, "refused the login by OAUTHBEARER")
    assert old not in done.stderr


def test_a_certificate_for_another_host_is_refused(broker: Secured) -> None:
    done = broker.tgate("agent", "notices", "--from-start", bootstrap_servers=broker.misnamed)
    assert_one_sentence(done, "is not trusted: IP address mismatch")


def test_an_unknown_authority_is_refused(broker: Secured) -> None:
    done = broker.tgate("agent", "topics", "list", tls_ca_file=str(broker.directory / "elsewhere.crt"))
    assert_one_sentence(done, "is not trusted")


def assert_one_sentence(done: subprocess.CompletedProcess[str], what: str) -> None:
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == FAILED, done.stderr
    assert len(errors) == 1, done.stderr
    assert what in errors[0]
    assert "Traceback" not in done.stderr


def test_evaluators_score_with_the_rights_that_they_have(broker: Secured, tmp_path: Path) -> None:
    """The whole way: a request is read, its trace found, its score published, its turn decided by it."""
    more = {"request_evals": "true", "tier1_metrics": "coherence", "session_metrics_each_turn": "true"}
    traces = [{"session_id": "scored", "trace_id": f"scored-{n}", "input": "a door", "output": "a key"} for n in (1, 2)]
    processes = []
    try:
        for role, command in (("worker", "worker"), ("evaluators", "evaluators")):
            environ = broker.environ(role, state_dir=str(tmp_path / role), **more)
            with (tmp_path / f"{role}.log").open("wb") as log:
                arguments = [sys.executable, "-m", "streams", command]
                processes.append(subprocess.Popen(arguments, env=environ, stdout=log, stderr=log))
        sent = broker.tgate("agent", "publish", "-", told="".join(json.dumps(trace) + "\n" for trace in traces))
        assert sent.returncode == 0, sent.stderr
        deadline = time.monotonic() + PATIENCE_S
        found: set[str] = set()
        while not found >= {"coherence", "agent_reliability"}:
            assert time.monotonic() < deadline, (tmp_path / "evaluators.log").read_text()[-2000:]
            read = broker.tgate("operator", "reports", "--from-start", "--json")
            reports = [json.loads(line) for line in read.stdout.splitlines()]
            mine = [item for item in reports if item["session_id"] == "scored"]
            found = {score["metric"] for item in mine for score in item["scores"] if score["value"] is not None}
    finally:
        for process in processes:
            process.terminate()
        codes = [process.wait(PATIENCE_S) for process in processes]
    assert codes == [0, 0]
    said = (tmp_path / "evaluators.log").read_text()
    assert not [line for line in said.splitlines() if "AuthorizationFailed" in line]
