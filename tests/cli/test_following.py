"""Following a topic while its broker does not answer: a person is told, and told when it is over."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streams.broker import RunningBroker
from tests.cli import records
from tests.cli.running import Topics

ROOT = Path(__file__).parents[2]


@contextmanager
def frozen(broker: Any) -> Iterator[None]:
    """Have a broker not answer while the block lasts; its connections stay."""
    pid = broker.pid() if callable(broker.pid) else broker.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_broker_that_goes_away_is_said_and_so_is_its_return(topics: Topics, broker: RunningBroker) -> None:
    topics.put([records.notice("before")])
    follow = [sys.executable, "-m", "streams", "notices", "--follow", "--json"]
    environ = {**os.environ, **topics.environ}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(follow, cwd=ROOT, env=environ, **pipes) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert '"before"' in process.stdout.readline()
            with frozen(broker):
                assert process.stderr.readline().startswith(f"no answer from {broker.bootstrap} for 5 s; waiting")
            assert process.stderr.readline() == "the broker is back\n"
            topics.put([records.notice("after")])
            assert '"after"' in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert process.stderr.read().strip() in ("", "interrupted")
        finally:
            process.kill()
