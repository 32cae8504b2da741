"""tgate replay: what the rules, as recorded or others, make of what was seen; and how two sets of rules differ."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import click

from streams.agents.outbox import Output
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import block, examples
from streams.cli.output import as_json_option, clean, note
from streams.cli.progress import Counter
from streams.cli.records import Records, Side, choice_of, choice_options, given, refused
from streams.cli.replay_show import Shown, show_differences
from streams.core.model import Notice
from streams.core.rules import Rules
from streams.replay.choice import Choice
from streams.replay.difference import compare
from streams.replay.folding import CandidateReplay, Replay, changed, differences, recorded
from streams.replay.running import Origin, replay_candidates
from streams.replay.targets import Files, Target, Topics
from streams.replay.topics import TopicReader
from streams.settings import load
from streams.wire import Wire

AS_RECORDED: Final = "recorded"
RULE_NAMES: Final = {item.name: item.name for item in fields(Rules)} | {"pace_file": "pace"}
"""Setting -> the rule that it gives."""


@click.command(
    epilog=block(
        "Rules: as recorded in the session log; with -s, those with these settings changed; with",
        "--config, those of a worker that runs with this file. Input topics and files hold no rules:",
        "there they are always the settings'. Every record is folded from the start of the log,",
        "so that each decision knows what it knew live; options choose what is shown.",
    )
    + "\n\n"
    + block(
        "Input topics and files carry no ticks: time is then that of the records, and a wait is over",
        "when the next record is later, or there is none. That is not what a live worker saw.",
    )
    + "\n\n"
    + examples(
        "tgate replay                                        everything, as it was",
        "tgate replay --since 2h -s gate_window=3 --json | jq .summary",
        "tgate replay --diff recorded chosen.toml --project shop",
        "tgate replay sessions.jsonl.gz -s tier1_metrics=task_completion --out replayed/",
        "tgate replay --from notice-candidates --session s1  the circuit breaker alone",
    )
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--from",
    "origin",
    type=click.Choice([item.value for item in Origin]),
    default=Origin.SESSION_LOG.value,
    show_default=True,
    help="Which topic to replay, where no file is named; inputs are traces and scores as they were published.",
)
@click.option("--recorded", "as_recorded", is_flag=True, help="The rules as recorded, whatever --config says.")
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    help="Replay under two settings files and list the notices that differ; `recorded` stands for the recorded rules.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write every output to files there."
)
@click.option("--to-topics", metavar="PREFIX", help="Publish every output to topics named with this prefix.")
@as_json_option
@choice_options
@common
@pass_invocation
def command(
    invocation: Invocation,
    /,
    *,
    files: tuple[Path, ...],
    origin: str,
    as_recorded: bool,
    diff: tuple[str, str] | None,
    out: Path | None,
    to_topics: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay what was seen through the same rules as live, or others, and show the notices.

    FILE holds traces and scores as `tgate publish` takes them: JSON lines, or Parquet. With --json: one notice a line.
    """
    run = _Run(invocation, Records(invocation, Origin(origin), files, choice_of(**options), as_json), as_json)
    if diff is not None:
        if out or to_topics or as_recorded or origin == Origin.CANDIDATES:
            raise click.UsageError("--diff lists differences: it goes with neither --out, --to-topics nor --recorded")
        asyncio.run(run.differ(*diff))
    else:
        asyncio.run(run.show(as_recorded=as_recorded, out=out, prefix=to_topics))


@dataclass(frozen=True)
class _Run:
    invocation: Invocation
    records: Records
    as_json: bool

    async def show(self, *, as_recorded: bool, out: Path | None, prefix: str | None) -> None:
        """Replay once; show the notices, and write all outputs where they should go."""
        shown = Shown(Wire.of(self.invocation.settings), as_json=self.as_json)
        targets = await self._targets(out, prefix)

        async def take(_: int, outputs: Sequence[Output]) -> None:
            shown.take(outputs)
            for target in targets:
                await target.write(outputs)

        try:
            if self._is_candidates:
                await self._candidates(take)
            else:
                self._tell_rules(*await self.records.into([side_of(self.invocation, as_recorded=as_recorded)], take))
        finally:
            for target in targets:
                await target.close()
        shown.end()

    async def differ(self, first: str, second: str) -> None:
        """Replay under two sets of rules side by side, and show how their notices differ."""
        notices: tuple[list[Notice], list[Notice]] = ([], [])

        async def take(number: int, outputs: Sequence[Output]) -> None:
            notices[number].extend(item for item in outputs if isinstance(item, Notice))

        sides = [self._named(name) for name in (first, second)]
        before, after = await self.records.into(sides, take)
        _tell_difference("A and B differ in", before.rules[-1:], after.rules[-1:])
        found, same = compare(*notices)
        show_differences(found, same, as_json=self.as_json)

    @property
    def _is_candidates(self) -> bool:
        return self.records.origin is Origin.CANDIDATES and not self.records.files

    async def _candidates(self, take: Any) -> None:
        choice: Choice = self.records.choice
        reader = TopicReader(self.invocation.settings, choice)
        with Counter(visible=not self.as_json) as counter:
            await replay_candidates(reader, CandidateReplay(choice), take, counter.at)
        refused(reader.refused, "left out ")

    async def _targets(self, out: Path | None, prefix: str | None) -> list[Target]:
        settings = self.invocation.settings
        targets: list[Target] = []
        if out is not None:
            targets.append(Files(out, Wire.of(settings)))
        if prefix is not None:
            targets.append(await Topics(settings, prefix).open())
        return targets

    def _named(self, name: str) -> Side:
        """Return the side that a settings file, or the word `recorded`, stands for; -s counts for both."""
        if name == AS_RECORDED:
            return side_of(self.invocation, as_recorded=self.invocation.config is not None)
        return given(load(Path(name), self.invocation.overrides).settings.rules)

    def _tell_rules(self, replay: Replay) -> None:
        if self.as_json or self.records.files or self.records.origin is Origin.INPUTS:
            return
        hashes = ", ".join(rules.hash for rules in replay.rules)
        note((f"rules {hashes}" if hashes else "no rules recorded", "dim"))
        _tell_difference("unlike the recorded ones:", replay.recorded_rules[-1:], replay.rules[-1:])


def side_of(invocation: Invocation, *, as_recorded: bool = False) -> Side:
    """Return the rules that the options name: of a file whole, of -s over the recorded ones, else as recorded."""
    rules = invocation.settings.rules
    names = [RULE_NAMES[name] for name in invocation.overrides if name in RULE_NAMES]
    named = {name: getattr(rules, name) for name in names}
    if as_recorded:
        return Side(recorded, rules)
    if invocation.config is not None:
        return given(rules)
    return Side(changed(named) if named else recorded, rules)


def _tell_difference(words: str, before: list[Rules], after: list[Rules]) -> None:
    for first, second in zip(before, after, strict=False):
        found = differences(first, second)
        said = ", ".join(f"{name} {_text(pair[0])} -> {_text(pair[1])}" for name, pair in found.items())
        if said:
            note((f"{words} ", "dim"), clean(said))


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
