"""tgate calibrate on the recorded sessions: what is shown, chosen, refused and written."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streams.cli import cli
from streams.settings import load

RECORDING = Path(__file__).parents[2] / "examples" / "recording"
SESSIONS, LABELS = str(RECORDING / "sessions.jsonl.gz"), str(RECORDING / "labels.json")
ONLY = ("-s", "tier1_metrics=task_completion")


def calibrate(*args: str) -> Result:
    return CliRunner().invoke(cli, ("calibrate", SESSIONS, *ONLY, *args))


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """A calibration on one half of the sessions, with the settings file it wrote."""
    file = tmp_path_factory.mktemp("calibration") / "chosen.toml"
    return calibrate("--labels", LABELS, "--half", "a", "--false-alarms", "1/100", "--toml", str(file)), file


def test_the_tables_on_the_screen(half: tuple[Result, Path]) -> None:
    result, _ = half
    assert result.exit_code == 0
    assert "127 sessions, 2,304 traces with a tier-1 value; 79 failed, 48 did not" in result.stdout
    rows = {" ".join(line.split()) for line in result.stdout.splitlines()}
    assert any(row.startswith("in force 5 0.5 0.02 0.15 106.3 76 of 127 0.921 0.886 0.903 17.2") for row in rows)
    assert any(row.startswith("chosen 10 0.9 0.1 off") for row in rows)
    assert any(row.startswith("deadline ") for row in rows)
    assert result.stderr.startswith("chosen: at most 1/100 false alarms per trace of good sessions")


def test_the_settings_file_holds_setting_and_evidence(half: tuple[Result, Path]) -> None:
    _, file = half
    rules = load(file, environ={}).settings.rules
    assert (rules.gate_window, rules.gate_drop, rules.tier1_metrics) == (10, 1.0, ("task_completion",))
    text = file.read_text()
    assert "127 sessions, 2,304 traces; 79 failed" in text
    assert "0 false" in text
    assert "Cross-validated over 5 parts" in text


def test_the_difference_on_the_other_half(half: tuple[Result, Path]) -> None:
    args = ("replay", SESSIONS, *ONLY, "-s", "circuit_breaker_max_notices=0", "--half", "b")
    (Path(half[1].parent) / "empty.toml").write_text("")
    result = CliRunner().invoke(cli, (*args, "--diff", str(half[1].parent / "empty.toml"), str(half[1])))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "57 gained, 176 lost, 5 changed, 0 earlier, 20 later, 37 the same"


def test_a_budget_that_the_labels_do_not_support_is_refused_with_the_bound() -> None:
    result = calibrate("--labels", LABELS, "--half", "a", "--false-alarms", "1/500")
    assert result.exit_code == 1
    assert "refused: too few good traces to tell 1/500" in result.stderr
    assert "would prove no better than 1/136" in result.stderr
    assert "1,498 traces of good sessions" in result.stderr
    assert "gate_window = " not in result.stdout
    taken = calibrate("--labels", LABELS, "--half", "a", "--false-alarms", "1/500", "--by-estimate")
    assert taken.exit_code == 0
    assert "NOT PROVEN" in taken.stdout
    assert "gate_window = 10" in taken.stdout


def test_for_programs() -> None:
    result = calibrate("--labels", LABELS, "--json", "--false-alarms", "1/100")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    kinds = {row["kind"] for row in rows}
    assert kinds == {"metric", "agreement", "gate", "rule", "choice", "pace", "comparison", "pace_choice"}
    compared = {row["rule"]: row for row in rows if row["kind"] == "comparison"}
    assert compared["pace"]["budget"] == compared["gate"]["budget"] == 0.01
    assert compared["pace"]["held_out"]["failed"] == 151
    (current,) = [row for row in rows if row["kind"] == "gate" and row["current"]]
    assert (current["tp"], current["fp"]) == (138, 9)
    assert current["setting"] == {"window": 5, "target": 0.5, "gain": 0.02, "drop": 0.15}


def test_without_labels_there_are_breaches_and_warnings_only() -> None:
    result = calibrate("-s", "gate_window=30", "--project", "expert")
    assert result.exit_code == 0
    assert "48 sessions, 282 traces with a tier-1 value; no labels" in result.stdout
    assert "100% of 48 sessions are not longer than gate_window 30" in result.stdout
    assert "recall" not in result.stdout


def test_pace_lines_are_written_with_their_evidence_and_read_by_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "pace.toml"
    result = calibrate("--labels", LABELS, "--half", "a", "--false-alarms", "1/50", "--pace", str(file), "--by-task")
    assert result.exit_code == 0, result.stderr
    assert "Pace beside the gate, at 1/50 false alarms per trace of good sessions" in result.stdout
    assert "pace chosen: at most 1/50 false alarms per trace of good sessions" in result.stderr
    text = file.read_text()
    assert "learned from sessions.jsonl.gz: what the 48 good sessions had reached" in " ".join(text.split())
    assert "Cross-validated over 5 parts" in text
    rules = load(overrides={"pace_file": str(file)}, environ={}).settings.rules
    assert {pace.metric for pace in rules.pace} == {"task_completion"}
    assert {pace.task for pace in rules.pace} == {None, "BabyAI-PickupLoc-v0", "BabyAI-PutNextLocal-v0"}
    shown = CliRunner().invoke(cli, ("replay", SESSIONS, *ONLY, "-s", f"pace_file={file}", "--half", "b", "--json"))
    notices = [json.loads(line) for line in shown.stdout.splitlines()]
    lagging = [item for item in notices if "pace:task_completion" in item["signatures"]]
    assert lagging
    assert {item["severity"] for item in lagging if len(item["signatures"]) == 1} == {"trend"}
    assert all(
        score["pace_line"] > score["peak"]
        for item in lagging
        for score in item["scores"]
        if "pace" in score["conditions"]
    )


def test_pace_is_learned_without_labels(tmp_path: Path) -> None:
    file = tmp_path / "pace.toml"
    result = calibrate("--half", "a", "--false-alarms", "1/20", "--pace", str(file))
    assert result.exit_code == 0, result.stderr
    assert "pace chosen: at most 1/20 alarms per trace, each counted as false" in result.stderr
    assert "what all 127 sessions had reached" in " ".join(file.read_text().split())
    refused = calibrate("--half", "a", "--false-alarms", "1/100000", "--pace", str(tmp_path / "none.toml"))
    assert refused.exit_code == 1
    assert not (tmp_path / "none.toml").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--false-alarms", "1/500"), "--false-alarms needs --labels"),
        (("--pace", "pace.toml"), "--pace needs --false-alarms"),
        (("--false-alarms", "often"), "is no rate: say 1/500"),
        (("--labels", "nowhere.json"), "labels nowhere.json: No such file"),
    ],
)
def test_wrong_usage(args: tuple[str, ...], said: str) -> None:
    result = calibrate("--project", "expert", *args)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
