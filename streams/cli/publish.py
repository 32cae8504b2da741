"""tgate publish: traces and scores from JSON lines, as fast as possible or at a multiple of the recorded pace."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import click

from streams import admin
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import block, examples
from streams.cli.output import as_json_option, clean, note, say, say_json
from streams.cli.pace import Pace
from streams.cli.pieces import Piece, pieces
from streams.cli.progress import Bar
from streams.engine import Out, Publisher, abilities, partition_for
from streams.errors import InvalidRecord, TopicsWrong
from streams.lines import Line, Lines, Prepared
from streams.security import connection, unseen
from streams.settings import Settings
from streams.topics import EVAL_SCORES, TRACE_INGESTED, named
from streams.wire import Wire

BATCH: Final = 1000


@click.command(
    epilog=block(
        "By hand, little is needed:",
        '  {"session_id": "s1", "trace_id": "t1"}',
        '  {"session_id": "s1", "trace_id": "t1", "name": "task_completion", "value": 0.4}',
        'A trace without them gets name "trace", status COMPLETED and started_at now; a score gets',
        "created_at now, and as score_id a hash of its line: the same file again makes the same ids.",
        "Parquet (extra `parquet`): a row is a line, columns are named as the fields are.",
    )
    + "\n\n"
    + examples(
        "tgate publish examples/recording/sessions.jsonl.gz",
        "tgate publish --speed 60 --limit 500 examples/recording/sessions.jsonl.gz",
        "tail -f scores.jsonl | tgate publish -",
    )
)
@as_json_option
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="N times the recorded pace; default: no pauses.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Publish the first N good lines only.")
@common
@pass_invocation
def command(
    invocation: Invocation, /, *, files: tuple[Path, ...], speed: float | None, limit: int | None, as_json: bool
) -> None:
    """Publish traces and scores from JSON lines; FILE may be gzipped, or Parquet, and - is standard input.

    A line is one JSON object. With any of score_id, value, data_type, target, eval_run_id,
    created_at or source it is a score, otherwise a trace. Each is checked as the worker will; a bad
    line is reported with file, number and reason, the others are published, and the exit code is 1.
    """
    settings = invocation.settings
    run = _Run(settings, speed, limit, as_json=as_json)
    try:
        asyncio.run(run.publish(files))
    finally:
        run.tell()
    if run.refused:
        raise SystemExit(1)


class _Run:
    """One run of the command: its counts, and what is about to be sent."""

    def __init__(self, settings: Settings, speed: float | None, limit: int | None, *, as_json: bool) -> None:
        self._settings = settings
        self._lines = Lines(Wire.of(settings))
        self._pace = Pace(speed)
        self._limit = limit
        self._as_json = as_json
        self._waiting: list[Prepared] = []
        self.sent = {TRACE_INGESTED: 0, EVAL_SCORES: 0}
        self.refused = 0
        self._started = False

    async def publish(self, files: Sequence[Path]) -> None:
        """Publish all files, in their order."""
        reach = connection(self._settings)
        found = await admin.find(reach, self._settings)
        self._counts = {role: found[role].partitions or 0 for role in self.sent}
        if missing := [role for role, count in self._counts.items() if not count]:
            names = ", ".join(found[role].topic.name for role in missing)
            raise TopicsWrong(
                f"topics missing at {reach.bootstrap}: {names}{unseen(self._settings)}; run `tgate topics create`"
            )
        self._topics = named(self._settings.topic_names)
        fences = (await abilities(reach)).fences
        self._publisher = Publisher(reach, idempotent=fences, max_record=self._settings.max_record_bytes)
        self._started = True
        try:
            with Bar(files, visible=not self._as_json) as bar:
                for file in files:
                    await self._publish_file(file, bar)
                    if self._is_full:
                        break
        finally:
            await self._publisher.stop()

    async def _publish_file(self, file: Path, bar: Bar) -> None:
        async with aclosing(pieces(file)) as read:
            async for piece in read:
                await self._publish_piece(piece)
                bar.at(piece.taken, sum(self.sent.values()))
                if piece.problem:
                    self._refuse(piece.name, None, piece.problem)
                if self._is_full:
                    return

    async def _publish_piece(self, piece: Piece) -> None:
        for line in piece.lines:
            if self._is_full:
                break
            prepared = self._prepare(piece.name, line)
            if prepared is None:
                continue
            if (pause := self._pace.pause(prepared.recorded_at)) > 0:
                await self._flush()
                await asyncio.sleep(pause)
            self._waiting.append(prepared)
            if len(self._waiting) >= BATCH:
                await self._flush()
        await self._flush()

    def _prepare(self, name: str, line: Line) -> Prepared | None:
        try:
            prepared = self._lines.prepare(line.text)
        except InvalidRecord as error:
            self._refuse(name, line.number, str(error))
            return None
        if self._publisher.fits(self._out(prepared)):
            return prepared
        limit = self._settings.max_record_bytes
        self._refuse(name, line.number, f"takes more than {limit} bytes, the setting max_record_bytes")
        return None

    def _out(self, prepared: Prepared) -> Out:
        partition = partition_for(prepared.key, self._counts[prepared.role])
        return Out(self._topics[prepared.role].name, partition, prepared.key, prepared.value)

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        await self._publisher.publish([self._out(prepared) for prepared in waiting])
        for prepared in waiting:
            self.sent[prepared.role] += 1

    @property
    def _is_full(self) -> bool:
        return self._limit is not None and sum(self.sent.values()) + len(self._waiting) >= self._limit

    def _refuse(self, name: str, number: int | None, reason: str) -> None:
        self.refused += 1
        if self._as_json:
            say_json({"file": name, "line": number, "refused": reason})
        else:
            where = name if number is None else f"{name}:{number}"
            note(("refused ", "red"), clean(where), ": ", clean(reason))

    def tell(self) -> None:
        """Say what was published, also when it was cut short: these records have their acks."""
        if not self._started:
            return
        traces, scores = self.sent[TRACE_INGESTED], self.sent[EVAL_SCORES]
        if self._as_json:
            say_json({"traces": traces, "scores": scores, "refused": self.refused})
            return
        refused = (f", refused {self.refused} lines", "red") if self.refused else ""
        say(f"published {traces} traces, {scores} scores", refused)
