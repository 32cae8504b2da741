"""The README's agent, run as it stands there."""

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
