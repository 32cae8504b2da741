"""Prompts are files that name their version, and a score says which words its judge was given."""

import re

import pytest

from streams.evaluators import prompting
from streams.evaluators.prompting import prompt
from streams.evaluators.steps import STEPS


def test_every_file_belongs_to_a_metric():
    assert {path.stem for path in prompting._FOLDER.iterdir()} == {*STEPS, "common"}


@pytest.mark.parametrize("metric", STEPS)
def test_a_version_has_a_number_for_people_and_a_hash_of_the_words(metric, tmp_path, monkeypatch):
    now = prompt(metric).version
    assert re.fullmatch(r"1\+[0-9a-f]{8}", now)
    for name in (metric, "common"):
        for path in prompting._FOLDER.iterdir():
            words = path.read_text() + (" " if path.stem == name else "")
            (tmp_path / path.name).write_text(words)
        with monkeypatch.context() as patched:
            patched.setattr(prompting, "_FOLDER", tmp_path)
            changed = prompt.__wrapped__(metric).version
        assert changed.startswith("1+")
        assert changed != now


def test_a_file_without_a_version_is_a_mistake(tmp_path, monkeypatch):
    (tmp_path / "common.md").write_text("You judge.")
    monkeypatch.setattr(prompting, "_FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"common.md does not begin with its version"):
        prompt.__wrapped__("confidence")


def test_only_our_own_words_are_filled_in():
    said = prompt("confidence").messages("confidence", {"type": "object"}, {"trace": '"{task} {schema}"'})
    assert [message["role"] for message in said] == ["system", "user"]
    assert "{task}" not in said[0]["content"]
    assert '{"type":"object"}' in said[0]["content"]
    assert said[1]["content"] == '<data name="trace">\n"{task} {schema}"\n</data>'
