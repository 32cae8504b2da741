"""tgate export: topics as files, one JSON object a line."""

import asyncio
import gzip
from contextlib import aclosing, closing
from pathlib import Path
from typing import BinaryIO, cast

import click

from streams import reading
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import say
from streams.cli.progress import Counter
from streams.cli.records import refused
from streams.cli.since import SINCE
from streams.errors import InvalidRecord
from streams.replay.exporting import EXPORTED, line_of
from streams.wire import Wire


@click.command(
    epilog=examples(
        "tgate export trace-ingested eval-scores --out seen/ && tgate replay seen/*.jsonl",
        "tgate export notices --since 1d --gzip --out notices/",
        "tgate export session-log --places --out log/",
    )
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", type=click.Choice(EXPORTED))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Where the files go, each named after its topic; default: here.",
)
@click.option("--since", type=SINCE, metavar="WHEN", help="Records since then: 90s, 15m, 2h, 3d, or ISO 8601.")
@click.option("--places", is_flag=True, help="Wrap each record in its topic, partition, offset, time and key.")
@click.option("--gzip", "packed", is_flag=True, help="Compress the files.")
@common
@pass_invocation
def command(
    invocation: Invocation, /, *, topics: tuple[str, ...], out: Path, since: int | None, places: bool, packed: bool
) -> None:
    """Write what topics hold now to files, one JSON object a line.

    Traces and scores come out as `tgate publish`, `tgate replay` and `tgate calibrate` take them.
    """
    out.mkdir(parents=True, exist_ok=True)
    for role in topics:
        file = out / f"{role}.jsonl{'.gz' * packed}"
        count = asyncio.run(_export(invocation, role, file, since, places=places))
        say(f"{file}: {count} records")


async def _export(invocation: Invocation, role: str, file: Path, since: int | None, *, places: bool) -> int:
    (place,) = await reading.locate(invocation.settings, role)
    line = line_of(role, Wire.of(invocation.settings), with_place=places)
    count = 0
    unread: list[tuple[str, int, str]] = []
    with closing(_opened(file)) as out, Counter(visible=True) as counter:
        async with aclosing(reading.pages(place, since_ms=since)) as pages:
            async for page in pages:
                for record in page.records:
                    # Where a broker cannot find a time, all of the topic is read.
                    if since is not None and record.timestamp < since:
                        continue
                    try:
                        out.write(line(record) + b"\n")
                        count += 1
                    except InvalidRecord as error:
                        unread.append((f"{record.topic}-{record.partition}", record.offset, str(error)))
                counter.at(count)
    refused(unread, "left out ")
    return count


def _opened(file: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(file, "wb")) if file.suffix == ".gz" else file.open("wb")
