"""What the throughput benchmark makes of its samples."""

import pytest

from benchmarks.pipeline.measure import Sample, run_of

PER_OUTPUT = 20


def sample(time_s: float, committed: int, outputs: int | None = None, **values: float) -> Sample:
    costs = {"cpu_s": time_s / 2, "broker_cpu_s": time_s / 4, "busy_s": time_s, "own_cpu_s": 0.0, "resident": 1}
    return Sample(time_s, committed, committed // PER_OUTPUT if outputs is None else outputs, **{**costs, **values})


def run(samples: list[Sample], total: int = 1_000):
    return run_of(samples, total, PER_OUTPUT, processors=2, peak_bytes=7)


def test_the_warm_up_does_not_count():
    found = run([sample(0, 0), sample(5, 100), sample(6, 400), sample(7, 1_000)])
    assert (found.records, found.seconds, found.rate) == (900, 2, 450)
    assert (found.cpu_s, found.broker_cpu_s) == (1, 0.5)
    assert found.cpu_per_100k == pytest.approx(1 / 900 * 100_000)
    assert (found.complete, found.repeated, found.peak_bytes) == (True, 0, 7)


def test_time_after_the_last_step_does_not_count():
    found = run([sample(0, 0), sample(1, 100), sample(2, 600), sample(9, 600)])
    assert (found.records, found.seconds, found.complete) == (500, 1, False)


def test_what_is_committed_without_its_outputs_is_not_done():
    found = run([sample(0, 0), sample(1, 200), sample(2, 1_000, outputs=30), sample(3, 1_000)])
    assert (found.records, found.seconds, found.complete) == (800, 2, True)
    with pytest.raises(ValueError, match="nothing was done"):
        run([sample(0, 0), sample(1, 1_000, outputs=0)])


def test_a_slow_one_warms_up_by_time():
    found = run([sample(0, 0), *(sample(second, second, outputs=second) for second in range(1, 40))])
    assert (found.records, found.seconds, found.rate) == (28, 28, 1)


def test_one_step_is_no_rate():
    with pytest.raises(ValueError, match="after the warm-up"):
        run([sample(0, 0), sample(1, 1_000)])


def test_outputs_put_out_twice_are_told():
    assert run([sample(0, 0), sample(1, 100), sample(2, 1_000, outputs=53)]).repeated == 3


def test_what_others_take_of_the_machine():
    found = run([sample(0, 0), sample(1, 100), sample(3, 1_000, busy_s=4.5, own_cpu_s=0.5)])
    # 3.5 s busy, of which 1 + 0.5 + 0.5 are ours, of two processors in two seconds.
    assert found.others_share == pytest.approx(1.5 / 4)
