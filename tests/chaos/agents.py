"""Seeded agents that never stop: traces and scores of many sessions, with everything that goes wrong in real input."""

import json
import random
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from streams.topics import EVAL_SCORES, TRACE_INGESTED
from streams.wire import Wire

PROJECTS = 5
ACTIVE = 40
TRACE_MARK = 1_000_000_000_000
"""A trace carries its number in `ended_at`, from here on; a score carries it in `reason`."""
OVERSIZED = 150_000


@dataclass(frozen=True)
class Line:
    """One record to publish. number: unique in the run, and found again in the session log."""

    number: int
    role: str
    value: bytes
    key: bytes | None
    is_valid: bool
    anywhere: bool = False
    """Whether a partitioner of its own sends it to any partition."""


@dataclass
class Session:
    name: str
    project: str
    level: float
    count: int = 0
    wakes_at: float = 0.0
    announced: deque[str] = field(default_factory=lambda: deque(maxlen=20))


class Agents:
    """Yields one turn of one session at a time; the same seed tells the same stories, apart from their times."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._wire = Wire()
        self._number = 0
        self._born = 0
        self._sessions = [self._new_session() for _ in range(ACTIVE)]
        self._recent: deque[tuple[str, dict[str, Any]]] = deque(maxlen=200)

    def turn(self) -> list[Line]:
        """Return the lines of the next turn, in the order to publish them."""
        at = self._rng.randrange(len(self._sessions))
        session = self._sessions[at]
        if self._rng.random() < 0.01:
            session = self._sessions[at] = self._new_session()
        elif self._rng.random() < 0.01:
            # Longer than a session lives: it comes back as one never seen.
            session.wakes_at = time.monotonic() + self._rng.uniform(20, 60)
        if time.monotonic() < session.wakes_at:
            return []
        records = self._records(session)
        if self._rng.random() < 0.05:
            self._rng.shuffle(records)
        if self._rng.random() < 0.05 and self._recent:
            records.append(self._rng.choice(self._recent))
        self._recent.extend(records)
        lines = [self._line(role, session.name, fields) for role, fields in records]
        if self._rng.random() < 0.05:
            lines.append(self._malformed(session))
        return lines

    def _new_session(self) -> Session:
        self._born += 1
        return Session(f"s{self._born}", f"project-{self._born % PROJECTS}", self._rng.uniform(0.1, 0.6))

    def _records(self, session: Session) -> list[tuple[str, dict[str, Any]]]:
        rng = self._rng
        records: list[tuple[str, dict[str, Any]]] = []
        traces = rng.choices((1, 2, 3), (7, 2, 1))[0]
        for last in [False] * (traces - 1) + [True]:
            session.count += 1
            trace_id = f"{session.name}-{session.count}"
            session.level = min(1.0, max(0.0, session.level + rng.uniform(-0.2, 0.22)))
            if rng.random() > 0.03:
                records += self._announcements(session, trace_id, is_last=last and rng.random() > 0.03)
            for metric in ("task_completion", "coherence"):
                if rng.random() > 0.04:
                    records.append(self._score(session, trace_id, metric))
        if rng.random() < 0.4:
            records += [
                self._score(session, trace_id, metric) for metric in ("tool_correctness", "argument_correctness")
            ]
        if rng.random() < 0.03:
            records.append(self._score(session, None, "outcome_correct"))
        if rng.random() < 0.1:
            run = f"run-{session.name}-{session.count}" if rng.random() < 0.7 else None
            records += [
                self._score(session, None, metric, target="SESSION", eval_run_id=run)
                for metric in ("agent_reliability", "agent_consistency")[: rng.choice((1, 2, 2))]
            ]
        return records

    def _announcements(self, session: Session, trace_id: str, *, is_last: bool) -> list[tuple[str, dict[str, Any]]]:
        late = 600_000 if self._rng.random() < 0.03 else 0
        trace = {
            "session_id": session.name,
            "trace_id": trace_id,
            "project": session.project,
            "name": "step",
            "status": "COMPLETED",
            "started_at": time.time_ns() // 1_000_000 - late,
            "ends_turn": is_last,
            "input": json.dumps(f"do the work of {trace_id}"),
        }
        if self._rng.random() < 0.1:
            return [(TRACE_INGESTED, {**trace, "status": "RUNNING"}), (TRACE_INGESTED, trace)]
        return [(TRACE_INGESTED, trace)]

    def _score(self, session: Session, trace_id: str | None, metric: str, **more: Any) -> tuple[str, dict[str, Any]]:
        session.count += trace_id is None
        kinds: list[dict[str, Any]] = [
            {"value": f"{session.level:.3f}"},
            {"value": "true" if session.level > 0.4 else "false", "data_type": "BOOLEAN"},
            {"value": "good", "data_type": "CATEGORICAL"},
            {"status": "FAILED"},
            {"status": "PENDING"},
            {"value": "0.9", "source": "ANNOTATION"},
        ]
        return EVAL_SCORES, {
            "score_id": f"{trace_id or f'{session.name}-{session.count}'}-{metric}",
            "session_id": session.name,
            "trace_id": trace_id,
            "name": metric,
            "created_at": time.time_ns() // 1_000_000,
            **self._rng.choices(kinds, (88, 4, 2, 2, 2, 2))[0],
            **more,
        }

    def _line(self, role: str, session: str, fields: dict[str, Any]) -> Line:
        self._number += 1
        if role == TRACE_INGESTED:
            fields = {**fields, "ended_at": TRACE_MARK + self._number}
        else:
            fields = {**fields, "reason": f"#{self._number}"}
        if self._rng.random() < 0.2:
            value = self._wire.write_input("Trace" if role == TRACE_INGESTED else "Score", fields, "avro")
        else:
            value = json.dumps(fields).encode()
        return Line(self._number, role, value, session.encode(), is_valid=True, anywhere=self._rng.random() < 0.03)

    def _malformed(self, session: Session) -> Line:
        self._number += 1
        mark = f"#{self._number}"
        texts = {
            "no format at all": (EVAL_SCORES, f"garbage {mark}"),
            "no JSON": (TRACE_INGESTED, f'{{"trace_id": "{mark}"'),
            "a field is missing": (TRACE_INGESTED, f'{{"trace_id": "{mark}"}}'),
            "a value out of range": (
                EVAL_SCORES,
                json.dumps({"score_id": mark, "session_id": session.name, "name": "coherence", "value": "1.5"}),
            ),
            "too large": (
                TRACE_INGESTED,
                json.dumps(
                    {
                        "session_id": session.name,
                        "trace_id": mark,
                        "status": "COMPLETED",
                        "started_at": 1,
                        "output": json.dumps("x" * OVERSIZED),
                    }
                ),
            ),
        }
        role, text = texts[self._rng.choices(tuple(texts), (3, 3, 3, 3, 1))[0]]
        return Line(self._number, role, text.encode(), session.name.encode(), is_valid=False)


def number_of(body: Any) -> int:
    """Return the number that a record of the session log carries."""
    return body.ended_at - TRACE_MARK if hasattr(body, "ended_at") else int(body.reason.removeprefix("#"))
