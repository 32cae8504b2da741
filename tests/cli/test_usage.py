"""Settings, options, exit codes and messages, as far as they need no broker."""

import json
import os
import socket
from pathlib import Path

import pytest

from streams.cli import COMMANDS, cli
from streams.cli.invocation import ADDRESS_FILE
from streams.settings import Settings
from tests.cli.running import Run


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _rows(output: str) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in map(json.loads, output.splitlines())}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(run: Run, name: str) -> None:
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert "tgate" in shown.output.partition("Options:")[2] or name == "settings"
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert "Examples:" in (command.epilog or "")


def test_help_lists_the_commands_and_exit_codes(run: Run) -> None:
    shown = run("--help").output
    assert all(entry.help in " ".join(shown.split()) for entry in COMMANDS.values())
    assert "Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 130 interrupted." in shown


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("settings", "-s", "gate_windw=3"), "gate_windw (command line): there is no such setting"),
        (("settings", "-s", "gate_window=0"), "gate_window = '0' (command line): Input should be greater than"),
        (("settings", "-s", "gate_window"), "'gate_window' is not NAME=VALUE"),
        (("settings", "--config", "nowhere.toml"), "settings file nowhere.toml: No such file or directory"),
        (("notices", "--last", "3", "--from-start"), "choose one of them"),
        (("notices", "--since", "yesterdayish"), "is no time: say 90s, 15m, 2h"),
        (("up", "--broker", "embedded", "--bootstrap", "h:1"), "choose one of them"),
        (("publish",), "Missing argument 'FILE...'"),
        (("topics", "check", "-s", "security_protocol=SASL_SSL"), "sasl_username is empty"),
    ],
)
def test_wrong_usage_and_settings_exit_with_2(run: Run, args: tuple[str, ...], said: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(
    "args", [("topics", "list"), ("notices",), ("session", "show", "s"), ("worker",), ("breaker", "show")]
)
def test_no_broker_is_one_sentence_and_exit_1(run: Run, args: tuple[str, ...]) -> None:
    address = f"127.0.0.1:{_closed_port()}"
    result = run(*args, "--bootstrap", address)
    assert result.exit_code == 1
    sentence = f"error: no broker answers at {address}; start one with `tgate up`, or name yours"
    (said,) = [line for line in result.stderr.splitlines() if "connecting to" not in line and "Unable" not in line]
    assert said.startswith(sentence)


def test_settings_have_values_and_sources(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tgate.toml").write_text("gate_window = 3\ngate_gain = 0.1\n")
    result = run("--config", "tgate.toml", "settings", "--json", "-s", "gate_gain=0.2", TGATE_GATE_DROP="0.3")
    rows = _rows(result.stdout)
    assert list(rows) == list(Settings.model_fields)
    found = {name: (rows[name]["value"], rows[name]["source"]) for name in ("gate_window", "gate_gain", "gate_drop")}
    assert found == {
        "gate_window": (3, "tgate.toml"),
        "gate_gain": (0.2, "command line"),
        "gate_drop": (0.3, "TGATE_GATE_DROP"),
    }
    assert rows["gate_window"]["default"] == 5
    assert rows["gate_window"]["allowed"] == "1 to 1,000,000"


def test_options_before_and_after_a_command_meet_and_the_later_wins(run: Run) -> None:
    rows = _rows(run("-s", "gate_window=3", "-s", "gate_gain=0.3", "settings", "-s", "gate_window=4", "--json").stdout)
    assert (rows["gate_window"]["value"], rows["gate_gain"]["value"]) == (4, 0.3)


def test_a_password_is_never_shown(run: Run) -> None:
    for option in ("--json", "--markdown", None):
        result = run("settings", *([option] if option else []), TGATE_SASL_PASSWORD="hunter2")
        assert result.exit_code == 0
        assert "hunter2" not in result.output


def test_markdown_is_one_row_a_setting(run: Run) -> None:
    lines = run("settings", "--markdown").stdout.splitlines()
    assert lines[0] == "| setting | default | allowed | meaning |"
    assert len(lines) == 2 + len(Settings.model_fields)
    assert "| `gate_window` | `5` | 1 to 1,000,000 | traces without a gain that make a stall |" in lines


def test_no_colours_and_no_breaks_where_a_program_reads(run: Run) -> None:
    result = run("settings", "-s", f"app_id={'a' * 190}")
    assert "\x1b" not in result.output
    assert f"{'a' * 190} " in result.stdout


def test_the_address_of_a_running_up_is_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".tgate").mkdir()
    (tmp_path / ADDRESS_FILE).write_text(f"127.0.0.1:4711 {os.getpid()}\n")
    row = _rows(run("settings", "--json").stdout)["bootstrap_servers"]
    assert (row["value"], row["source"]) == (["127.0.0.1:4711"], str(ADDRESS_FILE))
    row = _rows(run("settings", "--json", "--bootstrap", "h:1").stdout)["bootstrap_servers"]
    assert (row["value"], row["source"]) == (["h:1"], "command line")
    row = _rows(run("settings", "--json", TGATE_BOOTSTRAP_SERVERS="h:2").stdout)["bootstrap_servers"]
    assert row["value"] == ["h:2"]


@pytest.mark.parametrize("content", ["", "127.0.0.1:4711", "127.0.0.1:4711 999999999", "a b c"])
def test_the_address_of_an_up_that_is_gone_is_not(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / ".tgate").mkdir()
    (tmp_path / ADDRESS_FILE).write_text(content)
    row = _rows(run("settings", "--json").stdout)["bootstrap_servers"]
    assert row["source"] == "default"
