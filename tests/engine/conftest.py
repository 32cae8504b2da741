"""The toy's topics on the broker of this run."""

import pytest

from streams.broker import RunningBroker
from tests.engine.workers import Cluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "faults: waits for timeouts; a quarter of a minute each")


@pytest.fixture
def cluster(broker: RunningBroker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(broker, request.node.name, tmp_path_factory.mktemp("toy"))
