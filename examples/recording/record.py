"""Record agents at BabyAI missions, or summarize what was recorded.

python record.py [--directory WHERE]   record (needs requirements.txt)
python record.py --summary             print what the recording holds
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from summary import summary

if TYPE_CHECKING:
    from session import Mission, Session

LEVELS = ("BabyAI-PickupLoc-v0", "BabyAI-PutNextLocal-v0")
MISSIONS_PER_LEVEL = 24
SHORTEST_MISSION = 8  # expert steps
START = 1_767_603_600_000  # 2026-01-05T09:00:00Z
BETWEEN_STARTS = (8_000, 16_000)  # milliseconds: two or three sessions at a time
DATA, LABELS = "sessions.jsonl.gz", "labels.json"


def missions(level: str) -> Iterator[Mission]:
    """Find the first seeds whose missions are long enough to go wrong in."""
    from environment import Room
    from expert import steps_needed
    from session import STEP_LIMIT, Mission

    found = seed = 0
    while found < MISSIONS_PER_LEVEL:
        distance = steps_needed(Room(level, seed, STEP_LIMIT).env)
        if distance is not None and distance >= SHORTEST_MISSION:
            found += 1
            yield Mission(level, seed, distance)
        seed += 1


def sessions() -> Iterator[Session]:
    """Play every mission with every kind of agent, in the order of starting."""
    from agents import KINDS
    from environment import Room
    from session import STEP_LIMIT, Clock, Session

    order = Random("order")
    by_level = [list(missions(level)) for level in LEVELS]
    start = START
    for number, mission in enumerate(m for pair in zip(*by_level, strict=True) for m in pair):
        for kind in order.sample(KINDS, len(KINDS)):
            session_id = f"{kind.kind}-{number:03d}"
            room = Room(mission.level, mission.seed, STEP_LIMIT)
            agent = kind(room, mission.distance, Random(session_id))
            clock = Clock(start, Random(f"{session_id} clock"))
            session = Session(session_id, mission, room, agent, clock)
            session.play()
            yield session
            start += order.randint(*BETWEEN_STARTS)


def record(directory: Path) -> None:
    """Play all sessions and write their lines in the order of time, and the labels."""
    lines: list[tuple[int, dict[str, Any]]] = []
    labels = {}
    for session in sessions():
        lines.extend(session.lines)
        labels[session.session_id] = not session.room.solved
    lines.sort(key=lambda line: line[0])  # stable: a session's own order stays
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for _, line in lines)
    (directory / DATA).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (directory / LABELS).write_text(json.dumps(labels, indent=0, sort_keys=True) + "\n")


def main() -> None:
    """Record or summarize, as the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--directory", type=Path, default=here, help="of the recording")
    parser.add_argument("--summary", action="store_true", help="read what is there")
    arguments = parser.parse_args()
    if not arguments.summary:
        record(arguments.directory)
    print(summary(arguments.directory / DATA))


if __name__ == "__main__":
    main()
