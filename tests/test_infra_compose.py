"""infra/compose.yaml holds together: names, order of start, settings that exist, one version of Kafka."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streams.settings import Settings

INFRA = Path(__file__).parents[1] / "infra"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load((INFRA / "compose.yaml").read_text())["services"])


def test_topics_once_then_two_workers(services: dict[str, Any]) -> None:
    assert services["topics"]["command"] == ["topics", "create"]
    assert services["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}
    for worker in ("worker-1", "worker-2"):
        assert services[worker]["command"] == ["worker"]
        assert services[worker]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}


def test_they_meet_kafka_where_it_listens(services: dict[str, Any]) -> None:
    advertised = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert "INSIDE://kafka:19092" in advertised
    for service in ("topics", "worker-1", "worker-2"):
        assert services[service]["environment"]["TGATE_BOOTSTRAP_SERVERS"] == "kafka:19092"
    assert "localhost:19092" in services["kafka"]["healthcheck"]["test"]


def test_nothing_is_open_to_the_network(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:9092:9092"]


def test_the_image_runs_the_kafka_of_the_tests(services: dict[str, Any]) -> None:
    version = re.search(r"<kafka.version>(.*)</kafka.version>", (INFRA / "kafka" / "pom.xml").read_text())
    assert version is not None
    assert services["kafka"]["image"] == f"apache/kafka:{version[1]}"


def test_settings_exist(services: dict[str, Any]) -> None:
    dockerfile = (INFRA / "Dockerfile").read_text()
    named = set(re.findall(r"\bTGATE_\w+", dockerfile))
    for service in services.values():
        named |= {name for name in service["environment"] if name.startswith("TGATE_")}
    assert {name.removeprefix("TGATE_").lower() for name in named} <= Settings.model_fields.keys()


def test_the_build_finds_its_files(services: dict[str, Any]) -> None:
    build = services["worker-1"]["build"]
    context = (INFRA / build["context"]).resolve()
    assert (context / build["dockerfile"]).is_file()
    copied = re.findall(r"^COPY (.*) \S+$", (INFRA / "Dockerfile").read_text(), re.MULTILINE)
    sources = [source for line in copied for source in line.split()]
    assert [source for source in sources if not (context / source).exists()] == []
    admitted = (INFRA / "Dockerfile.dockerignore").read_text().splitlines()
    assert {f"!{source}" for source in sources} <= set(admitted)


def test_workers_have_no_rights() -> None:
    dockerfile = (INFRA / "Dockerfile").read_text()
    assert dockerfile.rindex("\nUSER tgate\n") < dockerfile.index("\nENTRYPOINT")


def test_workers_are_asked_whether_they_are_ready_where_they_listen(services: dict[str, Any]) -> None:
    for worker in ("worker-1", "worker-2"):
        port = services[worker]["environment"]["TGATE_HEALTH_PORT"]
        assert f"http://127.0.0.1:{port}/ready" in services[worker]["healthcheck"]["test"][-1]
        assert services[worker]["restart"] == "unless-stopped"
