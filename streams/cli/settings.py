"""tgate settings: every setting with its value, default, source, what is allowed and what it means."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import click
import orjson
from pydantic import SecretStr
from rich.text import Text

from streams.allowed import allowed
from streams.cli.invocation import Invocation, common, pass_invocation
from streams.cli.manual import examples
from streams.cli.output import as_json_option, clean, say, say_json, show, table
from streams.settings import Settings, without_login

HIDDEN: Final = "(hidden)"


@dataclass(frozen=True)
class Row:
    """One setting, ready to be shown."""

    name: str
    value: Any
    default: Any
    source: str
    allowed: str
    meaning: str


@click.command(
    epilog=examples(
        "tgate settings",
        "tgate settings -s gate_window=3          see what a value becomes",
        "tgate settings --json | jq 'select(.source != \"default\")'",
    )
)
@as_json_option
@click.option("--markdown", is_flag=True, help="A table for documentation: names, defaults, allowed values, meanings.")
@common
@pass_invocation
def command(invocation: Invocation, /, *, as_json: bool, markdown: bool) -> None:
    """List every setting: value, default, where it came from, meaning."""
    rows = [_row(invocation, name) for name in Settings.model_fields]
    if as_json:
        for row in rows:
            say_json(row)
    elif markdown:
        _say_markdown(rows)
    else:
        _show_table(rows)


def _row(invocation: Invocation, name: str) -> Row:
    field = Settings.model_fields[name]
    loaded = invocation.loaded
    return Row(
        name=name,
        value=_shown(getattr(loaded.settings, name)),
        default=_shown(field.get_default(call_default_factory=True)),
        source=loaded.sources[name],
        allowed=allowed(_schema()["properties"][name]),
        meaning=field.description or "",
    )


@cache
def _schema() -> dict[str, Any]:
    return Settings.model_json_schema()


def _shown(value: Any) -> Any:
    """Return a value as JSON has it; a secret only as whether it is set."""
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, str):
        return without_login(value)
    return value if value is None or isinstance(value, bool | int | float) else _json_value(value)


def _json_value(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value, default=str))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return orjson.dumps(value).decode() if value else "none"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "none" if value in (None, "") else str(value)


def _show_table(rows: list[Row]) -> None:
    made = table("setting", "value", "from", "meaning")
    for row in rows:
        changed = row.source != "default"
        style = "bold" if changed else ""
        source = Text("" if not changed else row.source, "cyan")
        meaning = Text.assemble((row.meaning, ""), (f" ({row.allowed})", "dim"))
        made.add_row(Text(row.name, style), clean(_text(row.value), style), source, meaning)
    show(made)


def _say_markdown(rows: list[Row]) -> None:
    say("| setting | default | allowed | meaning |")
    say("|---|---|---|---|")
    for row in rows:
        default = _text(row.default).replace("|", "\\|")
        say(f"| `{row.name}` | `{default}` | {row.allowed} | {row.meaning} |")
