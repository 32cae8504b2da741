"""Logging: structlog for us and for the libraries below us, one line an event on stderr, for people or as JSON."""

import logging
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import structlog
from structlog.stdlib import ExtraAdder, PositionalArgumentsFormatter, ProcessorFormatter, add_logger_name
from structlog.typing import EventDict, Processor, WrappedLogger

from streams.settings import Settings

LIBRARIES: Final = ("faust", "mode", "aiokafka", "kafka", "asyncio", "openai", "httpx2", "httpcore2", "streams.engine")
"""Loggers that tell their services' life stories at INFO: heard from WARNING on, unless everything is asked for."""

MAX_SAID: Final = 256
_NAMELESS: Final = "streams."


def configure(settings: Settings, *, libraries: int = logging.WARNING, color: bool | None = None) -> None:
    """Send every log line of this process to stderr, as the settings say.

    libraries: the least level at which Faust, mode and aiokafka are heard; DEBUG in the settings lets all of it through.
    color: none asks the terminal.
    """
    level = logging.getLevelNamesMapping()[settings.log_level]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(foreign_pre_chain=_shared(), processors=_rendering(settings.log_format, color))
    )
    handler.addFilter(Repeats())
    logging.root.handlers = [handler]
    # Levels are set on loggers, not on the handler: a record that nobody wants is never built.
    logging.root.setLevel(level)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(level if level <= logging.DEBUG else max(level, libraries))
    logging.captureWarnings(capture=True)
    # Python's warnings are for developers, who have them as errors in the tests.
    logging.getLogger("py.warnings").setLevel(level if level <= logging.DEBUG else logging.ERROR)
    structlog.configure(
        processors=[*_shared(), ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def hush() -> None:
    """Keep the libraries' lines off stderr until logging is configured: a command that fails says so in its own words."""
    for name in LIBRARIES:
        if not (logger := logging.getLogger(name)).handlers:
            # Where no handler is found, Python writes warnings to stderr as they are.
            logger.addHandler(logging.NullHandler())


class Repeats(logging.Filter):
    """Leaves out a library's line that was logged in the same words a moment ago: a retry is one event, not thirty."""

    def __init__(self, pause_s: float = 30.0) -> None:
        super().__init__()
        self._pause_s = pause_s
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is to be written."""
        if not record.name.startswith(LIBRARIES):
            return True
        line = (record.name, record.getMessage())
        last = self._said.pop(line, None)
        if last is not None and record.created - last < self._pause_s:
            self._said[line] = last
            return False
        self._said[line] = record.created
        if len(self._said) > MAX_SAID:
            del self._said[next(iter(self._said))]
        return True


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        add_logger_name,
        PositionalArgumentsFormatter(),
        ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _rendering(log_format: Literal["console", "json"], color: bool | None) -> list[Processor]:
    drop_meta: Processor = ProcessorFormatter.remove_processors_meta
    if log_format == "json":
        return [drop_meta, structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=False)]
    colors = sys.stderr.isatty() if color is None else color
    return [
        drop_meta,
        _for_people,
        structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback),
    ]


def _for_people(_: WrappedLogger, __: str, event: EventDict) -> Mapping[str, Any]:
    """Say the time as the clock on the wall does, and leave out our own module names."""
    event["timestamp"] = f"{datetime.fromisoformat(event['timestamp']).astimezone():%H:%M:%S}"
    if str(event.get("logger", "")).startswith(_NAMELESS):
        del event["logger"]
    event["event"] = _printable(str(event["event"]))
    return event


def _printable(text: str) -> str:
    """Return *text* without what could drive a terminal: log lines may quote what came over the network."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
