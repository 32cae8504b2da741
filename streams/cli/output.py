"""What tgate writes: text on stdout and notes on stderr, safe for a terminal, or one JSON object a line."""

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streams.core.text import plain

MAX_SHOWN_BYTES: Final = 1000
PIPED_WIDTH: Final = 4096
"""Wide enough that no line breaks where a program reads."""

Piece = Text | str | tuple[str, str]
"""Text as it is, or with its style."""

as_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for programs.")


class Screen(Console):
    """A rich console that takes text as text, and leaves a broken pipe to the caller."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() else PIPED_WIDTH
        super().__init__(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True, width=width)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def say(*parts: Piece) -> None:
    """Print one line on stdout."""
    Screen().print(Text.assemble(*parts))


def note(*parts: Piece) -> None:
    """Print one line on stderr: about what is done, never the result itself."""
    Screen(stderr=True).print(Text.assemble(*parts))


def say_json(value: Any) -> None:
    """Print one JSON object as a line on stdout."""
    say_bytes(orjson.dumps(plain_data(value)))


def say_bytes(line: bytes) -> None:
    """Print a line that is JSON already."""
    click.echo(line.decode("utf-8", "replace"))


def clean(text: str | None, style: str = "", limit: int = MAX_SHOWN_BYTES) -> Text:
    """Return untrusted text without control characters, and never read as markup."""
    return Text(plain(text or "", limit), style)


def table(*columns: str, title: str = "") -> Table:
    """Return an empty table without walls."""
    made = Table(box=None, padding=(0, 3, 0, 0), header_style="bold", title=title or None, title_justify="left")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def show(renderable: Any) -> None:
    """Print a table on stdout."""
    screen = Screen()
    screen.print(renderable, soft_wrap=False)


def clock(milliseconds: int) -> str:
    """Return a time as people here read it: today's without its date, in the machine's time zone."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    today = datetime.now(UTC).astimezone().date()
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M:%S}"


def plain_data(value: Any) -> Any:
    """Return records as dicts and lists, ready for JSON."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain_data(value._asdict())
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain_data(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_data(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return value
