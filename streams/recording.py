"""The recorded sessions of real agents that the demo plays: where they are, and what is known of how they ended."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from streams.errors import RecordingMissing

LINES: Final = "sessions.jsonl.gz"
LABELS: Final = "labels.json"


@dataclass(frozen=True)
class Line:
    """One trace or score of the recording."""

    fields: dict[str, Any]

    @property
    def is_score(self) -> bool:
        return "score_id" in self.fields

    @property
    def session_id(self) -> str:
        return str(self.fields["session_id"])

    @property
    def recorded_at(self) -> int:
        """When it happened, in milliseconds: a trace when it ended, a score when it was made."""
        return int(self.fields["created_at"] if self.is_score else self.fields["ended_at"])


@dataclass
class Recording:
    """Sessions with their project and true outcome, and their lines in the order of time."""

    lines: list[Line]
    failed: dict[str, bool]
    projects: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.projects = {line.session_id: line.fields["project"] for line in self.lines if not line.is_score}

    def of(self, projects: Iterable[str]) -> "Recording":
        """Return the part that belongs to some projects."""
        kept = {session for session, project in self.projects.items() if project in set(projects)}
        lines = [line for line in self.lines if line.session_id in kept]
        return Recording(lines, {session: failed for session, failed in self.failed.items() if session in kept})

    def retold(self, project: str) -> "Recording":
        """Return the same sessions under other names, all in one project."""
        lines = [Line(dict(_renamed(line.fields, project))) for line in self.lines]
        return Recording(lines, {f"{project}-{session}": failed for session, failed in self.failed.items()})


def load() -> Recording:
    """Read the recording, from the package or from the source checkout.

    Raises:
        RecordingMissing: it is in neither.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "recorded", package.parent / "examples" / "recording"):
        if (folder / LINES).is_file():
            with gzip.open(folder / LINES, "rt", encoding="utf-8") as file:
                lines = [Line(json.loads(text)) for text in file]
            failed = json.loads((folder / LABELS).read_text("utf-8"))
            return Recording(sorted(lines, key=lambda line: line.recorded_at), failed)
    raise RecordingMissing(f"there is no {LINES} in this installation; run the demo from a source checkout")


def _renamed(fields: dict[str, Any], project: str) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if name == "project":
            yield name, project
        elif name in {"session_id", "trace_id", "score_id"}:
            yield name, f"{project}-{value}"
        else:
            yield name, value
