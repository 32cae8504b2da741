"""Files of pace lines: read for the settings, part of the rules, written so that they are read again."""

from pathlib import Path

import pytest

from streams.core.pace import Pace, Point
from streams.core.rules import Rules
from streams.errors import BadSettings
from streams.pace_files import MAX_LINES, MAX_POINTS, pace_text, read_pace
from streams.settings import load

LINES = (
    Pace("task_completion", None, 2, 3, (Point(3, 0.1, 40), Point(8, 0.35, 12)), 20, 0.05),
    Pace("task_completion", 'a "task"\n', 2, 3, (Point(3, 1.0, 40),), 20, 0.05),
)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    text = pace_text(LINES, ("learned somewhere", ""))
    assert text.startswith("# learned somewhere\n#\n")
    assert read_pace(written(tmp_path / "pace.toml", text)) == LINES


def test_its_contents_are_part_of_the_rules_and_their_hash(tmp_path: Path) -> None:
    file = written(tmp_path / "pace.toml", pace_text(LINES))
    rules = load(overrides={"pace_file": str(file)}, environ={}).settings.rules
    assert rules == Rules(pace=LINES)
    assert rules.hash != load(environ={}).settings.rules.hash
    commented = written(tmp_path / "other.toml", pace_text(LINES, ["another comment"]))
    assert load(environ={"TGATE_PACE_FILE": str(commented)}).settings.rules.hash == rules.hash
    config = written(tmp_path / "tgate.toml", f'pace_file = "{file}"\n')
    assert load(config=config, environ={}).settings.rules.hash == rules.hash
    changed = written(tmp_path / "third.toml", pace_text(LINES[:1]))
    assert load(overrides={"pace_file": changed}, environ={}).settings.rules.hash != rules.hash


def test_what_a_person_may_leave_out(tmp_path: Path) -> None:
    file = written(tmp_path / "pace.toml", '[[pace]]\nmetric = "m"\nuntil = 9\nline = [[1, 0, 0], [4, 0.5, 0]]\n')
    assert read_pace(file) == (Pace("m", points=(Point(1, 0.0), Point(4, 0.5)), until=9),)


LINE = '[[pace]]\nmetric = "m"\nuntil = 9\nline = [[1, 0.5, 0]]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "pace: Field required"),
        ("pace = 3", "pace: Input should be a valid list"),
        ("[[pace]", "is not TOML"),
        (LINE.replace("0.5", "1.5"), "pace.0.line.0.1: Input should be less than or equal to 1"),
        (
            LINE.replace("[[1, 0.5, 0]]", "[[4, 0.5, 0], [4, 0.6, 0]]"),
            "pace.0: the trace numbers of a line must ascend",
        ),
        (LINE.replace("[[1, 0.5, 0]]", "[]"), "pace.0.line: List should have at least 1 item"),
        (LINE.replace("[[1,", "[[0,"), "pace.0.line.0.0: Input should be greater than or equal to 1"),
        (LINE.replace("until", "untill"), "pace.0.until: Field required"),
        (LINE * 2, "two lines are for the same metric and task"),
        (LINE * (MAX_LINES + 1), f"at most {MAX_LINES} items"),
        (
            LINE.replace("[1, 0.5, 0]", ", ".join(f"[{n}, 0.5, 0]" for n in range(1, MAX_POINTS + 2))),
            "at most 64 items",
        ),
    ],
)
def test_a_wrong_file_stops_the_start_and_says_where(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path / "pace.toml", text)
    with pytest.raises(BadSettings) as error:
        load(overrides={"pace_file": str(file)}, environ={})
    assert said in str(error.value)
    assert str(error.value).startswith(f"pace_file {file}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"pace_file .*nowhere\.toml: No such file"):
        load(overrides={"pace_file": str(tmp_path / "nowhere.toml")}, environ={})


def test_the_largest_file_stays_small_in_the_rules(tmp_path: Path) -> None:
    """Every position record of the session stage carries the rules."""
    points = tuple(Point(1000 + 17 * number, number / 100, 99_999) for number in range(MAX_POINTS))
    lines = [Pace("task_completion", f"task-{number}", 2, 3, points, 9999, 0.05) for number in range(MAX_LINES)]
    rules = Rules(pace=read_pace(written(tmp_path / "pace.toml", pace_text(lines))))
    assert len(rules.text) < 100_000
