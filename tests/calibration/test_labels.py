"""Every form in which labels come, and what is none."""

import json
import tomllib
from pathlib import Path

import pytest

from streams.calibration.labels import complete, names_only_failed, of_cases, read_labels
from streams.calibration.toml import settings_file
from streams.core.gate import Gate
from streams.core.rules import Rules
from streams.errors import BadSettings
from streams.settings import load


@pytest.mark.parametrize(
    "text",
    [
        '{"a": true, "b": false}',
        '[{"session_id": "a", "failed": true}, {"session_id": "b", "failed": 0}]',
        "session_id,failed\na,true\nb,False\n",
        "\ufeffproject,failed,session_id\np,1,a\np,0,b\n",
    ],
)
def test_every_form(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels").write_text(text)
    assert read_labels(tmp_path / "labels") == {"a": True, "b": False}
    assert not names_only_failed(tmp_path / "labels")


def test_a_list_of_failed_sessions_labels_all_others_as_good(tmp_path: Path) -> None:
    (tmp_path / "labels").write_text('["a"]')
    assert names_only_failed(tmp_path / "labels")
    assert complete(read_labels(tmp_path / "labels"), ["a", "b"]) == {"a": True, "b": False}


def test_eval_cases(tmp_path: Path) -> None:
    (tmp_path / "cases").write_text('{"session_id": "a", "case_id": "1"}\n\n{"session_id": "a"}\n')
    assert of_cases(tmp_path / "cases") == {"a": True}


@pytest.mark.parametrize("text", ["7", '{"a": "perhaps"}', "a,b\n1,2\n", "[1]", "session_id,failed\na\n"])
def test_what_is_none_says_what_is_needed(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels").write_text(text)
    with pytest.raises(BadSettings, match="labels "):
        read_labels(tmp_path / "labels")


def test_missing_files_and_rubbish(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="No such file"):
        read_labels(tmp_path / "none")
    (tmp_path / "cases").write_text("rubbish")
    with pytest.raises(BadSettings, match="one eval case"):
        of_cases(tmp_path / "cases")


def test_a_settings_file_reads_back_as_the_same_rules(tmp_path: Path) -> None:
    rules = Rules(tier1_metrics=("a", "b"), thresholds={"x y": 0.5}, observe_only=True, score_wait_s=3.5)
    text = settings_file(rules, Gate(8, 0.7, 0.01, 0.3), ['It says "why",\nin two lines, ' + "long " * 40])
    assert all(len(line) < 120 for line in text.splitlines())
    assert len(tomllib.loads(text)) == 8
    (tmp_path / "chosen.toml").write_text(text)
    found = load(tmp_path / "chosen.toml", environ={}).settings.rules
    assert json.loads(found.text) == json.loads(rules.text) | {
        "gate_window": 8,
        "gate_target": 0.7,
        "gate_gain": 0.01,
        "gate_drop": 0.3,
    }
