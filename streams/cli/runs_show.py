"""How eval runs and their scores are shown."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import fields
from statistics import fmean
from typing import Any, Final, Self

import orjson
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from streams import reading
from streams.cli.output import Screen, clean, clock, note, say, say_bytes, say_json, table
from streams.cli.output import show as show_table
from streams.core.model import ScoreTarget
from streams.core.run_targets import Filters
from streams.core.runs import FINISHED, EvalRun, RunStatus
from streams.settings import Settings
from streams.topics import EVAL_RUNS
from streams.wire import Format, Wire

STYLES: Final[Mapping[str, str]] = {
    RunStatus.PENDING: "dim",
    RunStatus.RUNNING: "cyan",
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "bold red",
}
UNTAKEN_S: Final = 10.0
"""After this long a person is told why a run may still be PENDING."""

_TIMES: Final = ("date_from", "date_to")


def print_json(run: EvalRun) -> None:
    """Print a run as its record has it."""
    say_bytes(Wire().write(run, Format.JSON))


def of(run: EvalRun, count: int) -> str:
    """Return the word for so many of a run's targets."""
    return run.target.lower() + "s" * (count != 1)


def show_list(runs: Iterable[EvalRun]) -> None:
    """Print runs as a table."""
    made = table("created", "run", "status", "done", "failed", "of", "metrics", "name")
    for run in runs:
        made.add_row(
            clock(run.created_at),
            clean(run.run_id[:8], "bold"),
            Text(run.status, STYLES[run.status]),
            f"{run.evaluated_count} of {run.total_targets}",
            Text(str(run.failed_count), "red" if run.failed_count else "dim"),
            clean(f"{run.project} {run.target.lower()}s"),
            clean(", ".join(run.metrics)),
            clean(run.name, "dim", 60),
        )
    show_table(made)


def show(run: EvalRun) -> None:
    """Print all that is known of a run."""
    say(Text(run.status, STYLES[run.status]), "  ", clean(run.run_id, "bold"), "  ", clean(run.name))
    _line("done", _done(run))
    _line("metrics", ", ".join(run.metrics))
    _line("of", what_of(run.project, run.target, run.filters, run.sampling_rate, run.retry_of))
    _line("created", clock(run.created_at) + (f" by monitor {run.monitor_id}" if run.monitor_id else ""))
    if run.completed_at is not None:
        _line("ended", f"{clock(run.completed_at)}, {(run.completed_at - run.created_at) / 1000:.1f} s later")
    if run.judge_calls:
        tokens = f"{run.input_tokens} tokens in, {run.output_tokens} out"
        _line(
            "took", f"{run.judge_calls} requests to models, {tokens}" + (f", cost {run.cost:.4g}" if run.cost else "")
        )
    for name, values in (("thresholds", run.thresholds), ("weights", run.signal_weights)):
        if values:
            _line(name, ", ".join(f"{key} {value:g}" for key, value in values.items()))
    if run.model:
        _line("model", run.model)
    if run.error_message:
        _line("error", run.error_message, "red")


def what_of(project: str, target: ScoreTarget, filters: Filters, rate: float, retry_of: str | None = None) -> str:
    """Say what a run or monitor goes over."""
    if retry_of is not None:
        return f"the failed scores of run {retry_of}"
    said = [f"{target.lower()}s of project {project}"]
    for field in fields(filters):
        value = getattr(filters, field.name)
        if value in (None, ()):
            continue
        shown = clock(value) if field.name in _TIMES else ", ".join(value) if isinstance(value, tuple) else str(value)
        said.append(f"{field.name} {shown}")
    return ", ".join(said) + (f"; a sample of {rate:g}" if rate != 1.0 else "")


def show_scores(scores: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print scores, and what they come to by metric."""
    if as_json:
        for score in scores:
            say_json({**score, "metadata": orjson.loads(score["metadata"])})
        return
    if not scores:
        note(("no score that fits is kept", "dim"))
        return
    made = table("session", "trace", "metric", "value", "", "reason")
    for score in sorted(scores, key=lambda item: (item["session_id"], item["trace_id"] or "", item["name"])):
        value, passed = score["value"], _passed(score)
        verdict = Text("") if passed is None else Text("passed", "green") if passed else Text("below", "red")
        made.add_row(
            clean(score["session_id"], limit=60),
            clean(score["trace_id"] or "-", limit=60),
            clean(score["name"]),
            Text(score["status"].lower(), "red") if value is None else Text(f"{float(value):.4g}"),
            verdict,
            clean(score["reason"], "dim", 200),
        )
    show_table(made)
    _summarise(scores)


def _summarise(scores: Sequence[Mapping[str, Any]]) -> None:
    made = table("metric", "scores", "mean", "passed", "failed")
    for metric in dict.fromkeys(score["name"] for score in scores):
        held = [score for score in scores if score["name"] == metric]
        values = [float(score["value"]) for score in held if score["value"] is not None]
        passed = sum(_passed(score) is True for score in held)
        mean = f"{fmean(values):.4f}" if values else "-"
        made.add_row(clean(metric), str(len(held)), mean, f"{passed} of {len(values)}", str(len(held) - len(values)))
    say()
    show_table(made)


def _passed(score: Mapping[str, Any]) -> bool | None:
    """Whether a score is at or above the pass line that it was made with; none where it has no value."""
    passed = orjson.loads(score["metadata"]).get("success")
    return passed if isinstance(passed, bool) else None


def _done(run: EvalRun) -> str:
    if run.total_targets:
        done = f"{run.evaluated_count} of {run.total_targets} {of(run, run.total_targets)}"
        return f"{done}, {run.failed_count} failed scores"
    return "nothing: it has no targets" if run.status in FINISHED else "its targets are not chosen yet"


def _line(name: str, text: str, style: str = "") -> None:
    say((f"  {name:<11}", "dim"), clean(text, style))


async def watch(settings: Settings, run: EvalRun, *, as_json: bool) -> EvalRun:
    """Show a run's progress until it has ended, and return it as it ended."""
    (place,) = await reading.locate(settings, EVAL_RUNS, key=run.run_id.encode())
    wire = Wire.of(settings)
    with _Progress(run, visible=not as_json) as progress:
        patience = asyncio.create_task(progress.lose_patience())
        async with aclosing(reading.pages(place, follow=True)) as read:
            try:
                async for page in read:
                    for record in page.records:
                        if record.key != run.run_id.encode() or record.value is None:
                            continue
                        progress.at(found := wire.read(EvalRun, record.value))
                        if as_json:
                            print_json(found)
                        if found.status in FINISHED:
                            return found
            finally:
                patience.cancel()
    raise AssertionError("following ends only with the run")


class _Progress:
    """A bar on stderr where that is a terminal."""

    def __init__(self, run: EvalRun, *, visible: bool) -> None:
        screen = Screen(stderr=True)
        self._run = run
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(of(run, 2)),
            TextColumn("{task.fields[failed]}", style="red"),
            TimeElapsedColumn(),
            console=screen,
            transient=True,
            disable=not (visible and screen.is_terminal),
        )
        self._task = self._bar.add_task(run.status, total=None, failed="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def at(self, run: EvalRun) -> None:
        """Show where the run is."""
        self._run = run
        self._bar.update(
            self._task,
            description=run.status,
            total=run.total_targets or None,
            completed=run.evaluated_count,
            failed=f"{run.failed_count} failed scores" if run.failed_count else "",
        )

    async def lose_patience(self) -> None:
        """Say once what may be amiss with a run that nobody takes up."""
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(UNTAKEN_S)
            if self._run.status is RunStatus.PENDING:
                said = "no evaluator has taken it up yet: does one run? `tgate evaluators` starts one"
                self._bar.console.print(Text(said, "yellow"))
