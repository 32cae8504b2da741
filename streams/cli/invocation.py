"""The options that every command takes, and the settings that follow from them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click

from streams.broker.address import ADDRESS_FILE, announced
from streams.settings import Loaded, Settings, load

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass
class Invocation:
    """What one run of tgate was told before and after the command's name; after wins."""

    config: Path | None = None
    overrides: dict[str, str] = field(default_factory=dict)

    @cached_property
    def loaded(self) -> Loaded:
        """The settings; a broker that `tgate up` runs in this directory stands in where nothing names one.

        Raises:
            BadSettings: see settings.load.
        """
        loaded = load(self.config, self.overrides)
        if loaded.sources["bootstrap_servers"] != "default" or (found := announced()) is None:
            return loaded
        settings = load(self.config, {**self.overrides, "bootstrap_servers": found}).settings
        return Loaded(settings=settings, sources={**loaded.sources, "bootstrap_servers": str(ADDRESS_FILE)})

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses, for a message."""
        return ",".join(self.settings.bootstrap_servers)


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)


def common(command: _Command) -> _Command:
    """Give a command --config, --set and --bootstrap."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _of(ctx: click.Context) -> Invocation:
    """The one of the whole run: kept at the root, so that options before and after the command's name meet."""
    return ctx.find_root().ensure_object(Invocation)


def _take_config(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        _of(ctx).config = value


def _take_overrides(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> None:
    for given in values:
        name, equals, value = given.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{given!r} is not NAME=VALUE, such as gate_window=3", ctx=ctx)
        if name.strip() == "sasl_password":
            # Every user of the machine can list the arguments of a process.
            raise click.BadParameter("sasl_password belongs into a file that sasl_password_file names", ctx=ctx)
        _of(ctx).overrides[name.strip()] = value


def _take_bootstrap(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        _of(ctx).overrides["bootstrap_servers"] = value


_OPTIONS = (
    click.option(
        "--bootstrap",
        metavar="HOST:PORT",
        expose_value=False,
        callback=_take_bootstrap,
        help="The Kafka brokers, separated by commas.",
    ),
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        expose_value=False,
        callback=_take_config,
        help="A TOML file of settings; the variable TGATE_CONFIG names one too.",
    ),
    click.option(
        "-s",
        "--set",
        multiple=True,
        metavar="NAME=VALUE",
        expose_value=False,
        callback=_take_overrides,
        help="One setting, over file and environment; may be given again.",
    ),
)
