"""What a worker lives through: no broker, a stage that hangs, a write refused by mistake."""

import signal
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
    with cluster.worker(TOY_PAUSE="20", TOY_DATA="a") as slow:
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


@pytest.mark.parametrize("found", ["restored", "batch"])
def test_a_state_that_cannot_be_read_ends_the_worker(cluster: Cluster, found: str) -> None:
    cluster.feed(100)
    with cluster.worker(TOY_UNREADABLE=found) as worker:
        assert worker.wait() == 1
        assert worker.text().count("stopping: told to find a state of codec version 99") == 1
        assert "Crashed reason" not in worker.text()
    assert cluster.committed() == 0
    with cluster.worker():
        cluster.wait_until_settled(100)
    cluster.check()


def test_a_log_that_ends_before_its_state_ends_the_worker(cluster: Cluster) -> None:
    """What is appended there anew would pass for what the state has applied already."""
    cluster.feed(100)
    cluster.remember(partition=0, position=500)
    with cluster.worker() as worker:
        assert worker.wait() == 1
        assert f"{cluster.name}-in-0 ends before offset 500" in worker.text()
        assert "Crashed reason" not in worker.text()


@pytest.mark.kafka
@pytest.mark.parametrize("when", ["reading", "restoring"])
def test_a_worker_stops_without_its_broker(cluster: Cluster, when: str) -> None:
    cluster.feed(2000)
    with cluster.worker(TOY_PAUSE="0.05") as worker:
        cluster.wait_for_outputs(300)
        cluster.broker.kill()
        try:
            time.sleep(3 if when == "reading" else 0.1)
            began = time.monotonic()
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
            assert time.monotonic() - began < 20
        finally:
            cluster.broker.start()
    with cluster.worker():
        cluster.wait_until_settled(2000)
    cluster.check()


def test_a_slow_member_is_waited_for(cluster: Cluster) -> None:
    """The answer to JoinGroup takes longer than any other request may."""
    cluster.feed(200)
    patience = {"TOY_REQUEST_MS": "2500", "TOY_DRAIN": "8"}
    with cluster.worker(TOY_PAUSE="7", TOY_DATA="a", **patience) as slow:
        cluster.wait_for(lambda: "first" in slow.text(), "the slow worker does not begin")
        with cluster.worker(TOY_DATA="b", **patience) as second:
            cluster.wait_until_settled(200)
            assert "Marking the coordinator dead" not in second.text()
    cluster.check()
