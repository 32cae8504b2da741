"""Knows the versions the engine was written for, and says at start when others are installed."""

import logging
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Final

logger = logging.getLogger(__name__)

WRITTEN_FOR: Final[Mapping[str, str]] = {
    "faust-streaming": "0.15.3",
    "mode-streaming": "0.7.1",
    "aiokafka": "0.14.0",
}
"""The engine changes the inside of these, which their authors may change too."""


def check_versions(installed: Callable[[str], str] = version) -> None:
    """Log one warning when a package that the engine changes has another version."""
    others = {name: found for name, known in WRITTEN_FOR.items() if (found := installed(name)) != known}
    if others:
        logger.warning(
            "the engine was written for %s, but found %s; install those versions, or run the tests of the engine "
            "against these: pytest tests/engine, where a failing test of -m defects means a work-around less",
            _named(WRITTEN_FOR),
            _named(others),
        )


def _named(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {found}" for name, found in versions.items())
