"""A run of tgate in this process, and topics of the tests' own on the shared broker."""

from typing import Any

import pytest
from click.testing import CliRunner, Result

from streams.broker import RunningBroker
from streams.cli import cli
from tests.cli.running import Run, Topics, topics_of_its_own


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
    return topics_of_its_own(broker)


@pytest.fixture
def topics(bare: Topics) -> Topics:
    """Empty topics."""
    assert bare.run("topics", "create").exit_code == 0
    return bare
