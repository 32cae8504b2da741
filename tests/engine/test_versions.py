import logging
from importlib.metadata import version

import pytest

from streams.engine.versions import WRITTEN_FOR, check_versions


def test_the_installed_versions_are_those_the_engine_was_written_for(caplog: pytest.LogCaptureFixture):
    check_versions()
    assert not caplog.records
    assert {name: version(name) for name in WRITTEN_FOR} == WRITTEN_FOR


def test_another_version_is_one_warning_that_says_what_to_do(caplog: pytest.LogCaptureFixture):
    check_versions(lambda name: {**WRITTEN_FOR, "aiokafka": "0.15.0", "mode-streaming": "1.0"}[name])
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.name == "streams.engine.versions"
    said = record.getMessage()
    assert "found mode-streaming 1.0, aiokafka 0.15.0; install those versions" in said
    assert "faust-streaming 0.15.3, mode-streaming 0.7.1, aiokafka 0.14.0" in said
    assert "-m defects" in said
