"""A run of tgate in this process, and topics of the tests' own on the shared broker."""

import json
import secrets
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streams.broker import RunningBroker
from streams.cli import cli
from streams.topics import BY_ROLE
from tests.cli.running import PARTITIONS, Run, Topics


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Run:
    """Run tgate in an empty directory without any settings."""
    monkeypatch.chdir(tmp_path)

    def invoke(*args: str, stdin: str | None = None, **environ: str) -> Result:
        return CliRunner().invoke(cli, args, input=stdin, env=environ)

    return invoke


@pytest.fixture
def bare(broker: RunningBroker) -> Topics:
    """Names of topics that do not exist yet."""
    prefix = f"cli-{secrets.token_hex(4)}-"
    counts = ("INPUT", "LOG", "CANDIDATE", "OUTPUT")
    return Topics(
        {
            "TGATE_BOOTSTRAP_SERVERS": broker.bootstrap,
            "TGATE_TOPIC_NAMES": json.dumps({role: prefix + role for role in BY_ROLE}),
            "TGATE_APP_ID": prefix + "app",
            "TGATE_SESSION_TIMEOUT_S": "6",
            **{f"TGATE_{name}_PARTITIONS": str(PARTITIONS) for name in counts},
        }
    )


@pytest.fixture
def topics(bare: Topics) -> Topics:
    """Empty topics."""
    assert bare.run("topics", "create").exit_code == 0
    return bare
