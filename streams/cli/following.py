"""Shows a topic's records as lines: the newest ones, or all since some time, and then what comes."""

import heapq
import sys
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from rich.text import Text

from streams import reading
from streams.cli.output import Screen, clean, note, say_bytes
from streams.reading import Kind, Outputs
from streams.settings import Settings
from streams.wire import Format, Wire

R = TypeVar("R")


@dataclass(frozen=True)
class Window:
    """Which part of a topic: the newest `last`, or everything since a time; and whether what comes later too."""

    follow: bool
    since_ms: int | None
    last: int | None


@dataclass(frozen=True)
class Choice(Generic[R]):
    """What to show of a kind of record, and how; with a key, only the partition of that key is read."""

    kind: Kind[R]
    wanted: Callable[[R], bool]
    line: Callable[[R], Text]
    key: str | None
    as_json: bool


async def follow(settings: Settings, choice: Choice[R], window: Window) -> None:
    """Show the records of a topic."""
    key = None if choice.key is None else choice.key.encode("utf-8", "surrogatepass")
    (place,) = await reading.locate(settings, choice.kind.role, key=key)
    wire = Wire.of(settings)
    shown = _Shown(choice, wire)
    backlog = _Newest(choice.kind, window.last)
    read = reading.outputs(place, choice.kind, wire, since_ms=window.since_ms, follow=window.follow)
    caught_up = away = False
    async with aclosing(read) as pages:
        async for page in pages:
            _warn(page)
            if page.away != away:
                away = page.away
                _say_away(place.connection.bootstrap) if away else note(("the broker is back", "green"))
            values = [value for value in page.values if choice.wanted(value)]
            if caught_up or window.last is None:
                shown.show(values)
                continue
            backlog.add(values)
            if caught_up := page.caught_up:
                shown.show(backlog.take())
                _say_waiting(window)
    if not shown.count and not window.follow:
        note(("nothing there that fits", "dim"))


def _say_waiting(window: Window) -> None:
    """Tell a person that the silence from here on is meant."""
    if window.follow and sys.stderr.isatty():
        note(("waiting for more; Ctrl-C ends it", "dim"))


def _say_away(bootstrap: str) -> None:
    note((f"no answer from {bootstrap} for {reading.AWAY_S:.0f} s", "red"), "; waiting for it, Ctrl-C ends it")


def _warn(page: Outputs[R]) -> None:
    for problem in page.unreadable:
        note(("left out ", "yellow"), clean(problem))


class _Shown(Generic[R]):
    """Prints records; on one screen, for following may go on for days."""

    def __init__(self, choice: Choice[R], wire: Wire) -> None:
        self._choice = choice
        self._wire = wire
        self._screen = Screen()
        self.count = 0

    def show(self, values: list[R]) -> None:
        self.count += len(values)
        for value in values:
            if self._choice.as_json:
                say_bytes(self._wire.write(value, Format.JSON))
            else:
                self._screen.print(self._choice.line(value))


class _Newest(Generic[R]):
    """Keeps the newest records by their own time, in bounded memory."""

    def __init__(self, kind: Kind[R], limit: int | None) -> None:
        self._kind = kind
        self._limit = limit
        self._order = count()
        self._held: list[tuple[int, int, R]] = []

    def add(self, values: list[R]) -> None:
        for value in values:
            heapq.heappush(self._held, (self._kind.time(value), next(self._order), value))
            if self._limit is not None and len(self._held) > self._limit:
                heapq.heappop(self._held)

    def take(self) -> list[R]:
        """Return what is held, oldest first, and let go of it."""
        held, self._held = sorted(self._held), []
        return [value for _, _, value in held]
