"""The table of docs/faust.md and the tests it names agree."""

import ast
import re
from functools import cache

from streams.engine.versions import WRITTEN_FOR
from tests.engine.workers import ROOT

PAGE = (ROOT / "docs" / "faust.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and "`" in line
]
HERE = ROOT / "tests" / "engine"
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def named_in(file: str) -> dict[str, str]:
    """Return the tests of a file with their docstrings."""
    tree = ast.parse((HERE / file).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in functions if node.name.startswith("test_")}


def test_every_row_names_tests_and_files_that_exist() -> None:
    assert len(ROWS) >= 10
    for defect, upstream, work_around, shown, passes in ROWS:
        assert defect
        for name in re.findall(r"`(\w+\.py)`", work_around):
            assert (ROOT / "streams" / "engine" / name).exists()
        assert _TEST.findall(shown), defect
        assert _TEST.findall(passes), defect
        for file, name in _TEST.findall(shown + passes):
            assert name in named_in(file), f"{file}::{name}"
        said = [named_in(file)[name] for file, name in _TEST.findall(shown)]
        assert all(number in said[0] for number in re.findall(r"\d+", upstream)), (defect, said)


def test_every_test_of_a_defect_is_in_the_table() -> None:
    named = set(_TEST.findall(" ".join(cell for row in ROWS for cell in row)))
    for file in ("defects/test_on_a_broker.py", "defects/test_in_classes.py"):
        shows = {(file, name) for name, said in named_in(file).items() if said}
        assert shows <= named


def test_the_versions_are_those_the_engine_was_written_for() -> None:
    for name, version in WRITTEN_FOR.items():
        assert f"{name} {version}" in PAGE
    for said in (*named_in("defects/test_on_a_broker.py").values(), *named_in("defects/test_in_classes.py").values()):
        assert not said or any(f"{name} {version}" in said for name, version in WRITTEN_FOR.items()), said
