"""What a worker lives through: no broker, a stage that hangs, a write refused by mistake."""

import time

import pytest

from tests.engine.workers import Cluster

pytestmark = pytest.mark.faults


@pytest.mark.kafka
def test_the_broker_goes_away_and_comes_back(cluster: Cluster) -> None:
    cluster.feed(2000)
    with cluster.worker(TOY_PAUSE="0.05") as worker:
        cluster.wait_for_outputs(300)
        cluster.broker.kill()
        time.sleep(2)
        cluster.broker.start()
        cluster.wait_until_settled(2000)
        assert worker.running
    cluster.check()


def test_a_batch_that_outlasts_the_rebalance_is_given_up(cluster: Cluster) -> None:
    cluster.feed(200)
    with cluster.worker(TOY_PAUSE="5", TOY_DATA="a") as slow:
        cluster.wait_for(lambda: "first" in slow.text(), "the slow worker does not begin")
        with cluster.worker(TOY_DATA="b"):
            cluster.wait_for(lambda: "gave up" in slow.text(), "the rebalance waits")
            cluster.wait_until_settled(200)
            assert slow.running
    cluster.check()


@pytest.mark.kafka
def test_a_partition_fenced_by_a_stranger_is_taken_back(cluster: Cluster) -> None:
    cluster.feed(100)
    with cluster.worker() as worker:
        cluster.wait_until_settled(100)
        cluster.fence(partition=0)
        cluster.feed(400, first=100)
        cluster.wait_until_settled(500)
        assert "left alone" in worker.text()
    cluster.check()
