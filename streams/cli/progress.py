"""The progress of a long run, on stderr where that is a terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from streams.cli.output import Screen


class Bar:
    """How far through its files a run has come, by their bytes; of standard input nobody knows the end."""

    def __init__(self, files: Sequence[Path], *, visible: bool) -> None:
        screen = Screen(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[sent]} records"),
            TimeElapsedColumn(),
            console=screen,
            transient=True,
            disable=not (visible and screen.is_terminal),
        )
        sizes = [file.stat().st_size if file.is_file() else None for file in files]
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        self._task = self._progress.add_task("", total=total, sent=0)
        self._done = 0
        self._taken = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def at(self, taken: int, sent: int) -> None:
        """Show where the run is: *taken* bytes of the present file; less than before means that the next one began."""
        if taken < self._taken:
            self._done += self._taken
        self._taken = taken
        self._progress.update(self._task, completed=self._done + taken, sent=sent)


class Counter:
    """How many records of some topics have been read; nobody says in advance how many there are."""

    def __init__(self, *, visible: bool) -> None:
        screen = Screen(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.completed:,.0f} records"),
            TimeElapsedColumn(),
            console=screen,
            transient=True,
            disable=not (visible and screen.is_terminal),
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def at(self, read: int) -> None:
        """Show how many records have been read."""
        self._progress.update(self._task, completed=read)
