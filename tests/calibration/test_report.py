"""The report: one file, nothing fetched, names made safe, the same for the same data."""

import re
from html.parser import HTMLParser

import pytest

from streams.calibration.calibration import Calibration, Wish, calibrate
from streams.calibration.report import page, pictures
from streams.calibration.seen import Seen
from streams.core.log import LogRecord
from streams.core.model import Score, Trace, TraceStatus
from streams.core.rules import Rules
from streams.replay.folding import Replay

EVIL = "<script>alert(1)</script>"
RULES = Rules(tier1_metrics=("m",), tier2_metrics=())


def found(*, labeled: bool, evil: str = "plain") -> Calibration:
    """Sessions that climb, stand still and fall back, under a metric's and sessions' names that mean harm."""
    seen = Seen()
    replay = Replay(watch=seen.watch)
    replay.begin(RULES)
    offset = 1
    labels = {}
    for number in range(60):
        session = f"{evil}-{number}"
        labels[session] = number % 3 != 0
        values = ([0.1 * step for step in range(1, 11)], [0.3] * 12, [0.4, 0.6, 0.2, 0.2, 0.1])[number % 3]
        for step, value in enumerate(values):
            trace = Trace(f"{session}-{step}", "p", TraceStatus.COMPLETED, step)
            score = Score(f"{session}-{step}", f"{session}-{step}", "m", value)
            for body in (trace, score):
                seen.take(replay.apply(0, LogRecord(offset, step, body, session)))
                offset += 1
    return calibrate(seen, RULES, Wish(labels if labeled else None, 1 / 10 if labeled else None))


class Parsed(HTMLParser):
    """Which tags stand in a page, and what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.references += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href"}]


@pytest.mark.parametrize("labeled", [True, False])
def test_one_file_that_fetches_nothing(*, labeled: bool) -> None:
    result = found(labeled=labeled, evil=EVIL)
    text = page(result, pictures(result), f"a file called {EVIL}", "gate_window = 3\n")
    parsed = Parsed(text)
    assert {"script", "link", "iframe", "object", "foreignobject"}.isdisjoint(parsed.tags)
    assert all(reference.startswith(("#", "data:image/png;base64,")) for reference in parsed.references)
    assert "url(http" not in text
    assert "gate_window = 3" in text
    assert "mathdefault" not in text
    names = {picture.name for picture in pictures(result)}
    expected = {"trade-off", "lead-time", "pace-m"} if labeled else {"notices"}
    assert ("Pace beside the gate" in text) == labeled
    assert names == expected | {"sessions-m", "metric-m"}


def test_the_same_data_make_the_same_page() -> None:
    first, second = (page(result, pictures(result), "x", None) for result in (found(labeled=True), found(labeled=True)))
    assert first == second


def test_axes_have_names() -> None:
    for result in (found(labeled=True), found(labeled=False)):
        for picture in pictures(result):
            for axes in picture.figure.axes:
                if axes.axison and axes.get_label() != "<colorbar>":
                    assert axes.get_xlabel() or not re.match("trade|lead|notices|metric", picture.name), picture.name
            assert any(axes.get_ylabel() for axes in picture.figure.axes)
            assert any(axes.get_xlabel() for axes in picture.figure.axes)
            assert picture.png().startswith(b"\x89PNG")


def test_a_session_name_cannot_be_read_as_mathematics() -> None:
    """A dollar sign would start a formula, and a broken one would end the report."""
    result = found(labeled=True, evil="$\\frac{$")
    assert pictures(result)[0].svg().startswith("<svg")
    assert all(picture.svg() for picture in pictures(result))
