"""What every competitor does with a record, so that none does more or less than another.

Each reads both input topics, decodes every record whole, folds a peak and a counter for the session, puts out one
record in OUTPUT_EVERY, and keeps the session's state in a changelog topic. A competitor is a process of its own:

    python -m benchmarks.pipeline.contenders.NAME '{"bootstrap": "127.0.0.1:9092", "run": "x", "idempotent": true}'
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

import orjson

from streams.topics import EVAL_SCORES, TRACE_INGESTED

INPUTS = (TRACE_INGESTED, EVAL_SCORES)
OUTPUT_EVERY = 20


@dataclass(frozen=True)
class Task:
    """Where a competitor works.

    run: names its group and its topics, so that runs do not meet.
    idempotent: whether the broker has idempotent producers; every competitor that can then uses one.
    directory: for what it keeps on disk.
    """

    bootstrap: str
    run: str
    partitions: int
    idempotent: bool
    directory: str

    @property
    def outputs(self) -> str:
        """The topic of what is put out."""
        return f"{self.run}-outputs"

    @property
    def changelog(self) -> str:
        """The topic of what is kept, where the competitor does not name it itself."""
        return f"{self.run}-changelog"

    def text(self) -> str:
        """Return the task as a process takes it."""
        return json.dumps(self.__dict__)

    @classmethod
    def of_process(cls) -> "Task":
        """Read this process's task."""
        return cls(**json.loads(sys.argv[1]))


@dataclass(slots=True)
class Tracked:
    """What is kept of a session: the highest value of any score, and how many records there were."""

    peak: float = 0.0
    count: int = 0

    def fold(self, record: dict[str, Any]) -> None:
        """Take in a decoded trace or score."""
        self.count += 1
        value = record.get("value")
        if value is not None and value > self.peak:
            self.peak = value

    def encoded(self) -> bytes:
        """Return what is stored."""
        return orjson.dumps({"peak": self.peak, "count": self.count})
