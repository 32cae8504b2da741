"""Which records a replay or a calibration takes, and running them through replays."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from streams.cli.invocation import Invocation
from streams.cli.output import clean, note
from streams.cli.pieces import pieces
from streams.cli.progress import Bar, Counter
from streams.cli.since import SINCE
from streams.core.model import Score
from streams.core.rules import Rules
from streams.replay.choice import Choice, Offsets
from streams.replay.files import Reader
from streams.replay.folding import Change, Replay, always
from streams.replay.running import Origin, Take, all_inputs, replay_inputs, replay_log
from streams.replay.timeline import Input
from streams.replay.topics import TopicReader
from streams.topics import SESSION_LOG
from streams.wire import Wire

SHOWN_REFUSALS: Final = 10

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _OffsetsType(click.ParamType):
    """Reads `PARTITION:FIRST-LAST` or `PARTITION:FIRST-`."""

    name = "offsets"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, Offsets]:
        if isinstance(value, tuple):
            return value
        partition, colon, stretch = value.partition(":")
        first, dash, last = stretch.partition("-")
        numbers = [partition, first, *([last] if last else [])]
        if not (colon and dash and all(number.isdecimal() for number in numbers)):
            self.fail(f"{value!r} is no stretch of a partition: say 3:1000-2000, or 3:1000- to its end", param, ctx)
        return int(partition), (int(first), int(last) if last else None)


_CHOICE = (
    click.option("--since", type=SINCE, metavar="WHEN", help="What was decided since: 90s, 15m, 2h, 3d, or ISO 8601."),
    click.option("--until", type=SINCE, metavar="WHEN", help="What was decided before then."),
    click.option(
        "--offsets",
        type=_OffsetsType(),
        multiple=True,
        metavar="P:FIRST-LAST",
        help="What these records of a log partition decided; may be given again. Other partitions are left out.",
    ),
    click.option("--session", multiple=True, metavar="S", help="Of this session only; may be given again."),
    click.option("--project", multiple=True, metavar="P", help="Of this project only; may be given again."),
    click.option(
        "--half",
        type=click.Choice(["a", "b"]),
        help="Of the sessions whose names fall into this half: to choose settings on one and judge them on the other.",
    ),
    click.option(
        "--cold",
        is_flag=True,
        help="Begin to fold at --since or --offsets with nothing known from before: faster, but sessions that had "
        "begun are judged as if they had not.",
    ),
)


def choice_options(command: _Command) -> _Command:
    """Give a command the options that choose a part of a log."""
    for option in reversed(_CHOICE):
        command = option(command)
    return command


def choice_of(
    *,
    since: int | None,
    until: int | None,
    offsets: tuple[tuple[int, Offsets], ...],
    session: tuple[str, ...],
    project: tuple[str, ...],
    half: str | None,
    cold: bool,
) -> Choice:
    """Return what the options choose."""
    return Choice(since, until, dict(offsets), frozenset(session), half, frozenset(project), cold)


@dataclass(frozen=True)
class Side:
    """One replay of a run: what it makes of recorded rules, and its rules where none are recorded."""

    change: Change
    rules: Rules


def given(rules: Rules) -> Side:
    """Return the side that obeys these rules whatever was recorded."""
    return Side(always(rules), rules)


@dataclass(frozen=True)
class Records:
    """Records of topics or of files."""

    invocation: Invocation
    origin: Origin
    files: tuple[Path, ...]
    choice: Choice
    quiet: bool = False

    async def into(
        self, sides: Sequence[Side], take: Take, watch: Callable[[str, Score], None] | None = None
    ) -> list[Replay]:
        """Run the records through a replay a side; *take* gets their outputs. Returns the replays, for what they met."""
        settings = self.invocation.settings
        topic = settings.topic_names.get(SESSION_LOG, SESSION_LOG)
        replays = [Replay(side.change, self.choice, topic, watch) for side in sides]
        if not self.files and self.origin is Origin.SESSION_LOG:
            reader = TopicReader(settings, self.choice)
            with Counter(visible=not self.quiet) as counter:
                await replay_log(reader, replays, take, counter.at)
            refused(reader.refused, "left out ")
            _tell_left_out(replays)
        else:
            inputs = await self._inputs()
            with Counter(visible=not self.quiet) as counter:
                await replay_inputs(inputs, replays, [side.rules for side in sides], take, counter.at)
        for failed in replays[0].failed:
            note(("failed ", "red"), "the rules raised on session ", clean(failed.name), ": ", clean(failed.error))
        return replays

    async def _inputs(self) -> list[Input]:
        if self.files:
            return await self._of_files()
        reader = TopicReader(self.invocation.settings, self.choice)
        with Counter(visible=not self.quiet) as counter:
            found = await all_inputs(reader.inputs(), counter.at)
        refused(reader.refused, "left out ")
        return found

    async def _of_files(self) -> list[Input]:
        reader = Reader(Wire.of(self.invocation.settings))
        found: list[Input] = []
        with Bar(self.files, visible=not self.quiet) as bar:
            for file in self.files:
                async with aclosing(pieces(file)) as read:
                    async for piece in read:
                        found += reader.read(piece.name, piece.lines)
                        bar.at(piece.taken, len(found))
                        if piece.problem:
                            raise click.ClickException(f"{piece.name}: {piece.problem}")
        refused(reader.refused, "refused ")
        return found


def refused(found: list[tuple[str, int, str]], word: str) -> None:
    """Say which records or lines could not be read."""
    for name, number, reason in found[:SHOWN_REFUSALS]:
        note((word, "yellow"), clean(f"{name}:{number}"), ": ", clean(reason))
    if len(found) > SHOWN_REFUSALS:
        note((word, "yellow"), f"{len(found) - SHOWN_REFUSALS} more")


def _tell_left_out(replays: Iterable[Replay]) -> None:
    count = max(replay.left_out for replay in replays)
    if count:
        note(("left out ", "yellow"), f"{count} records of partitions that hold no rules")
