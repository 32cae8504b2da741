"""The options that say what a run or a monitor scores: metrics, targets, sampling, judge, pass lines and weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import click

from streams.cli.since import SINCE
from streams.core.model import DEFAULT_PROJECT, ScoreTarget, TraceStatus
from streams.core.monitors import Monitor
from streams.core.run_targets import Filters

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FIELDS: Final = ("metrics", "target", "project", "name", "sampling_rate", "model")
_FILTERS: Final = ("date_from", "date_to", "session_id", "user_id", "tags", "has_error", "min_trace_count")
CLEARABLE: Final = ("model", "thresholds", "signal_weights", "filters")


class _Pair(click.ParamType):
    """Reads `NAME=NUMBER`."""

    name = "pair"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        if isinstance(value, tuple):
            return value
        name, _, number = value.partition("=")
        try:
            return name.strip(), float(number)
        except ValueError:
            self.fail(f"{value!r} is not NAME=NUMBER, such as coherence=0.7", param, ctx)


_PAIR: Final = _Pair()

_OPTIONS = (
    click.option("-m", "--metric", "metrics", multiple=True, metavar="M", help="Score this; may be given again."),
    click.option(
        "--target",
        type=click.Choice([item.value.lower() for item in ScoreTarget]),
        help="Go over traces (the default) or over whole sessions.",
    ),
    click.option("--project", metavar="P", help=f"Of this project; default {DEFAULT_PROJECT}."),
    click.option("--name", metavar="TEXT", help="What to call it."),
    click.option(
        "--id",
        "ids",
        multiple=True,
        metavar="ID",
        help="This trace (or session, with --target session) instead of filters; may be given again.",
    ),
    click.option("--from", "date_from", type=SINCE, metavar="WHEN", help="Started then or later: 2h, 3d, ISO 8601."),
    click.option("--to", "date_to", type=SINCE, metavar="WHEN", help="Started before then."),
    click.option("--status", type=click.Choice([item.value for item in TraceStatus]), help="Traces with this status."),
    click.option("--session", "session_id", metavar="S", help="Traces of this session."),
    click.option("--user", "user_id", metavar="U", help="Of this end user."),
    click.option("--tag", "tags", multiple=True, metavar="T", help="With this tag, or another one given again."),
    click.option("--trace-name", metavar="TEXT", help="Traces with this in their name, in any case."),
    click.option("--has-error/--no-error", default=None, help="Sessions with, or without, a trace that is an ERROR."),
    click.option("--min-traces", "min_trace_count", type=int, metavar="N", help="Sessions of at least so many traces."),
    click.option(
        "--sample", "sampling_rate", type=float, metavar="RATE", help="Score this share of them, 0 to 1; default all."
    ),
    click.option("--model", metavar="NAME", help="Let this model judge, over the setting judge_model."),
    click.option(
        "--threshold",
        "thresholds",
        type=_PAIR,
        multiple=True,
        metavar="METRIC=VALUE",
        help="Its pass line, instead of 0.5; may be given again.",
    ),
    click.option(
        "--weight",
        "signal_weights",
        type=_PAIR,
        multiple=True,
        metavar="SIGNAL=VALUE",
        help="How much a signal counts in session metrics; may be given again.",
    ),
)


def asking_options(command: _Command) -> _Command:
    """Give a command the options that say what is scored."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Wish:
    """What was asked for on the command line; only what was given."""

    fields: Mapping[str, Any]
    """Of a run or a monitor."""
    filters: Mapping[str, Any]
    ids: tuple[str, ...]

    def of_new(self) -> dict[str, Any]:
        """Return the fields of a new run or monitor."""
        start = {"project": DEFAULT_PROJECT, "name": "", "target": ScoreTarget.TRACE, "metrics": ()}
        fields = {**start, **self.fields}
        return {**fields, "filters": self._filters(Filters(), fields["target"])}

    def over(self, monitor: Monitor, clear: tuple[str, ...] = ()) -> Monitor:
        """Return a monitor with other wishes.

        clear: those of CLEARABLE that are to be as if never given.
        """
        empty: dict[str, Any] = {"model": None, "thresholds": {}, "signal_weights": {}, "filters": Filters()}
        wanted = replace(monitor, **{name: empty[name] for name in clear})
        wanted = replace(wanted, **self.fields)
        return replace(wanted, filters=self._filters(wanted.filters, wanted.target))

    def _filters(self, known: Filters, target: ScoreTarget) -> Filters:
        given = dict(self.filters)
        if self.ids:
            given["trace_ids" if target is ScoreTarget.TRACE else "session_ids"] = self.ids
        return replace(known, **given)


def wish_of(options: Mapping[str, Any]) -> Wish:
    """Return what the values of `asking_options` ask for."""
    fields = {name: options[name] for name in _FIELDS}
    fields |= {name: dict(options[name]) for name in ("thresholds", "signal_weights")}
    if options["target"] is not None:
        fields["target"] = ScoreTarget(options["target"].upper())
    filters = {name: options[name] for name in _FILTERS} | {"name": options["trace_name"]}
    if options["status"] is not None:
        filters["status"] = TraceStatus(options["status"])
    return Wish(_given(fields), _given(filters), options["ids"])


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, (), {})}
