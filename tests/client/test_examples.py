"""The examples, run as they stand there."""

import json
import os
import subprocess
import sys
from pathlib import Path

from streams.broker import RunningBroker
from streams.settings import PREFIX
from tests.pipeline.harness import PATIENCE_S, pipeline

ROOT = Path(__file__).parents[2]


def test_the_ten_line_agent_hears_of_its_stall(broker: RunningBroker, tmp_path: Path) -> None:
    with pipeline(broker, "ten-lines", tmp_path, tier1_metrics="task_completion", score_wait_s=0.2) as running:
        running.start_worker()
        environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        environ |= {
            f"{PREFIX}BOOTSTRAP_SERVERS": broker.bootstrap,
            f"{PREFIX}TOPIC_NAMES": json.dumps(running.settings.topic_names),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, str(ROOT / "examples" / "ten_lines.py")]
        said = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        assert said.stdout.startswith("NOTICE ABOUT YOUR OWN WORK")
        assert 'what stands still: "task_completion" is 0.2, from its peak 0.2, on trace' in said.stdout


def test_the_closed_loop_runs_as_one_command() -> None:
    """It makes its environment, runs broker, worker and agents, and tells each difference with its interval."""
    command = [sys.executable, str(ROOT / "examples" / "closed_loop.py"), "--up", "--missions", "1"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for agent in ("expert", "noisy", "random", "repeater", "derailed", "all"):
        assert f"| {agent} |" in done.stdout
    differences = [line for line in done.stdout.splitlines() if line.startswith("listening changes ")]
    assert [line.split(" by ")[0] for line in differences] == [
        "listening changes success rate",
        "listening changes steps a session",
        "listening changes notices a session",
    ]
    assert all("95 % interval" in line for line in differences)
