"""A handful of faults on three brokers: nothing lost, nothing doubled. `make chaos` does more of them."""

from pathlib import Path

import pytest

from tests.chaos import run
from tests.chaos.faults import SHORT
from tests.chaos.scene import scene

pytestmark = pytest.mark.kafka


def test_a_handful_of_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scene(1, tmp_path / "chaos", rate=40) as here:
        outcomes = run.go_through(here, list(SHORT), print)
        unread = run.come_to_rest(here)
        result = run.result_of(here, outcomes, run.check(here), unread)
    assert result["records"] > 0
    assert run.is_good(result), f"{capsys.readouterr().out}\n{result}"
