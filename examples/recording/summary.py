"""What is in the recording, and what the trajectory gate says to it.

Reads the committed file only; needs nothing but Python. The gate is written
out here once more, so that the figures do not depend on the product.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

WINDOW, TARGET, GAIN, DROP = 5, 0.5, 0.02, 0.15


@dataclass
class Story:
    """One session: its kind, its progress after each trace, and how it ended."""

    kind: str
    values: list[float] = field(default_factory=list)
    solved: bool = False

    def findings(self) -> list[tuple[int, str]]:
        """List what the gate finds as (trace number from 1, condition)."""
        return list(gate(self.values))


def gate(values: Iterable[float]) -> Iterator[tuple[int, str]]:
    """Fold the trajectory gate over a session's values with the default settings."""
    peak: float | None = None
    traces_since_gain = 0
    for number, value in enumerate(values, start=1):
        if peak is None or value >= peak + GAIN:
            peak, traces_since_gain = value if peak is None else max(peak, value), 0
            continue
        traces_since_gain += 1
        stall = traces_since_gain >= WINDOW and peak < TARGET
        regression = value < peak - DROP
        if stall:
            yield number, "stall"
        if regression:
            yield number, "regression"
        if stall or regression:
            traces_since_gain = 0


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read a recording line by line."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_stories(path: Path) -> list[Story]:
    """Read a recording session by session."""
    stories: dict[str, Story] = {}
    for line in read_lines(path):
        if "score_id" not in line:
            story = stories.setdefault(line["session_id"], Story(line["project"]))
            story.solved = line["metadata"].get("outcome") == "solved"
        elif line["name"] == "task_completion":
            stories[line["session_id"]].values.append(float(line["value"]))
    return list(stories.values())


def by_kind(stories: list[Story]) -> str:
    """Write the table of counts and findings for each kind of agent."""
    kinds = sorted({story.kind for story in stories})
    rows = [(kind, [story for story in stories if story.kind == kind]) for kind in kinds]
    rows.append(("all", stories))
    table = [
        "| agent | sessions | traces | solved | stall | regression | either |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, some in rows:
        traces = sum(len(story.values) for story in some)
        solved = sum(story.solved for story in some)
        shares = " | ".join(_share(some, word) for word in ("stall", "regression", ""))
        table.append(f"| {kind} | {len(some)} | {traces} | {solved} | {shares} |")
    return "\n".join(table)


def by_outcome(stories: list[Story]) -> str:
    """Write the table of findings for each kind and outcome, and how early they come."""
    table = [
        "| outcome | agent | sessions | traces each | with a finding | first finding at trace |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for outcome, kind in sorted({(story.solved, story.kind) for story in stories}):
        some = [story for story in stories if (story.solved, story.kind) == (outcome, kind)]
        firsts = [found[0][0] for story in some if (found := story.findings())]
        first = f"{median(firsts):g} (median)" if firsts else "none"
        word = "solved" if outcome else "failed"
        length = mean(len(story.values) for story in some)
        table.append(f"| {word} | {kind} | {len(some)} | {length:.1f} | {len(firsts)} | {first} |")
    return "\n".join(table)


def in_short(stories: list[Story]) -> str:
    """Say in a sentence how well findings and failures go together."""
    failed = [story for story in stories if not story.solved]
    solved = [story for story in stories if story.solved]
    caught = sum(bool(story.findings()) for story in failed)
    wrong = sum(bool(story.findings()) for story in solved)
    return (
        f"The gate found something in {caught} of {len(failed)} failed sessions "
        f"and in {wrong} of {len(solved)} solved ones."
    )


def _share(stories: list[Story], word: str) -> str:
    """Write the share of sessions with a condition, or with any."""
    hits = sum(any(word in found for _, found in story.findings()) for story in stories)
    return f"{100 * hits / len(stories):.0f} %"


def summary(path: Path) -> str:
    """Write everything there is to say about a recording."""
    stories = read_stories(path)
    return "\n\n".join((by_kind(stories), by_outcome(stories), in_short(stories)))
