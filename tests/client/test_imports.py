"""What an agent's process has to load for the client: the Kafka client, not the worker's framework."""

import subprocess
import sys

WORKER_ONLY = ("faust", "mode", "venusian", "structlog", "prometheus_client", "aiohttp", "streams.engine.app")


def test_the_client_needs_no_faust() -> None:
    command = "import sys, streams.client; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert "aiokafka" in loaded
    assert [name for name in loaded if name in WORKER_ONLY] == []
