"""After restarts, crashes and rebalances the state is the fold of the log and no output is missing."""

import signal
import time

import pytest

from tests.engine.workers import Cluster


def test_plain_restarts_neither_lose_nor_double(cluster: Cluster) -> None:
    cluster.feed(600)
    for round_ in range(3):
        with cluster.worker(TOY_PAUSE="0.05") as worker:
            cluster.wait_for_outputs(600 * round_ + 150)
            worker.stop()
        cluster.feed(600, first=600 * (round_ + 1))
    with cluster.worker():
        cluster.wait_until_settled(2400)
    outputs = cluster.check()
    assert len(outputs) == 2400


def test_killed_in_mid_stream(cluster: Cluster) -> None:
    cluster.feed(3000)
    with cluster.worker(TOY_PAUSE="0.05", TOY_DISK="1") as worker:
        cluster.wait_for_outputs(500)
        worker.kill()
    with cluster.worker(TOY_DISK="1"):
        cluster.wait_until_settled(3000)
    cluster.check()


def test_a_second_worker_joins_and_leaves(cluster: Cluster) -> None:
    fed = 500
    cluster.feed(fed)
    with cluster.worker(TOY_PAUSE="0.05", TOY_DATA="a"):
        cluster.wait_for_outputs(200)
        with cluster.worker(TOY_PAUSE="0.05", TOY_DATA="b") as second:
            while "first" not in second.text():
                cluster.feed(200, first=fed)
                fed += 200
                assert second.running, second.text()
                time.sleep(0.2)
            cluster.feed(1000, first=fed)
            fed += 1000
            second.stop()
        cluster.wait_until_settled(fed)
    outputs = cluster.check()
    assert len(outputs) == fed


def test_a_batch_that_failed_is_read_again(cluster: Cluster) -> None:
    cluster.feed(1000)
    with cluster.worker(TOY_FAIL_AT="[3, 150]") as worker:
        cluster.wait_until_settled(1000)
        assert worker.text().count("told to fail") >= 2
    cluster.check()


@pytest.mark.kafka
def test_a_replaced_owner_cannot_write_state(cluster: Cluster) -> None:
    cluster.feed(2000)
    with cluster.worker(TOY_PAUSE="1.0", TOY_DATA="a") as late:
        cluster.wait_for(lambda: "first" in late.text(), "the first owner does not begin")
        late.signal(signal.SIGSTOP)
        with cluster.worker(TOY_DATA="b"):
            cluster.wait_until_settled(2000)
            before = cluster.state()
            late.signal(signal.SIGCONT)
            cluster.wait_for(lambda: "has a newer owner" in late.text(), "the late owner was not fenced")
            assert late.running
            assert cluster.state() == before
            cluster.feed(500, first=2000)
            cluster.wait_until_settled(2500)
    cluster.check()


def test_an_idle_worker_rests(cluster: Cluster) -> None:
    cluster.feed(100)
    with cluster.worker() as worker:
        cluster.wait_until_settled(100)
        before = worker.cpu_s()
        time.sleep(2)
        # A loop that spins takes all of a core, one that rests a few hundredths.
        assert worker.cpu_s() - before < 1.0
