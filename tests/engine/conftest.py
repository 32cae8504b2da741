"""The toy's topics on the broker of this run."""

import pytest

from streams.broker import RunningBroker
from tests.engine.workers import Cluster


@pytest.fixture
def cluster(broker: RunningBroker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(broker, request.node.name, tmp_path_factory.mktemp("toy"))
