"""Which broker the tests run on, and the last lines that say so."""

import logging
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from streams.broker import RunningBroker, apache_kafka, embedded

BROKERS = ("embedded", "kafka")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", choices=BROKERS, default="embedded", help="what tests marked `broker` run on")


def pytest_configure(config: pytest.Config) -> None:
    # A shell that runs the tests in the background has them ignore these, and so would every process they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.addinivalue_line("markers", "broker: uses the broker that --broker names")
    config.pluginmanager.register(Collected())
    config.addinivalue_line("markers", "kafka: needs Apache Kafka; runs with --broker kafka only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker("broker")
    if config.getoption("--broker") == "kafka":
        return
    left_out = [item for item in items if item.get_closest_marker("kafka")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A running broker, shared by the whole run: tests use topics and groups of their own."""
    if request.config.getoption("--broker") == "kafka":
        running = apache_kafka(tmp_path_factory.mktemp("kafka"))
    else:
        running = embedded()
    with running as found:
        request.config.stash[BROKER] = found.name
        yield found


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A command configures the logging of its process; here that is the process of the tests that follow."""
    handlers = list(logging.root.handlers)
    known = [
        logging.root,
        *(found for found in logging.root.manager.loggerDict.values() if isinstance(found, logging.Logger)),
    ]
    levels = [(logger, logger.level) for logger in known]
    yield
    logging.root.handlers = handlers
    for logger, level in levels:
        logger.setLevel(level)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger) and logger not in known:
            logger.setLevel(logging.NOTSET)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


BROKER = pytest.StashKey[str]()
SEEN: set[str] = set()


def pytest_sessionfinish(session: pytest.Session) -> None:
    name = session.config.stash.get(BROKER, None)
    if name is None:
        return
    SEEN.add(name)
    if hasattr(session.config, "workeroutput"):  # one of several processes: it tells the one that prints
        session.config.workeroutput["broker"] = name


class Collected:
    """Hears which broker each process of a parallel run used."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if name := getattr(node, "workeroutput", {}).get("broker"):
            SEEN.add(name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"broker of the shared fixture: {', '.join(sorted(SEEN)) or 'none was used'}")
