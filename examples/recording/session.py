"""One session: an agent at a mission, told as trace and score lines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from agents import Agent
from environment import Room, Step, View
from expert import steps_needed

STEP_LIMIT = 48  # actions before a session counts as failed
STEPS_PER_TRACE = 2


@dataclass(frozen=True)
class Mission:
    """A solvable task; `distance` is how many steps the expert needs for it."""

    level: str
    seed: int
    distance: int


@dataclass
class Clock:
    """Pretended time in epoch milliseconds: the recording itself takes no time."""

    now: int
    chance: Random

    def spend(self, least: int, most: int) -> int:
        """Let some milliseconds pass and return the new time."""
        self.now += self.chance.randint(least, most)
        return self.now


@dataclass
class Session:
    """What is known of a session while it is played; `lines` are (time, object)."""

    session_id: str
    mission: Mission
    room: Room
    agent: Agent
    clock: Clock
    lines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    turn: int = 0

    @property
    def trace_id(self) -> str:
        """The id of the trace being recorded."""
        return f"{self.session_id}-t{self.turn:02d}"

    def play(self) -> None:
        """Act until the mission is solved or the step limit is reached."""
        while not self.room.over:
            self._record_trace()
            self.clock.spend(300, 900)
            self.turn += 1

    def _record_trace(self) -> None:
        """Take a few actions; announce them as one trace, then its scores."""
        before, started_at = self.room.view(), self.clock.now
        spans, steps = self._act()
        self._announce(before, steps, spans, started_at)
        progress, reason = self._progress()
        self._score("task_completion", progress, reason)
        effective = sum(step.changed for step in steps)
        share = effective / len(steps)
        self._score("tool_correctness", share, f"{effective} of {len(steps)} actions had an effect")

    def _act(self) -> tuple[list[dict[str, Any]], list[Step]]:
        """Take the actions of one trace; each is a tool call."""
        spans: list[dict[str, Any]] = []
        steps: list[Step] = []
        self.clock.spend(80, 240)
        while len(steps) < STEPS_PER_TRACE and not self.room.over:
            before, started_at = self.room.view(), self.clock.now
            step = self.room.act(self.agent.act())
            steps.append(step)
            spans.append(
                {
                    "span_id": f"{self.trace_id}-s{len(steps)}",
                    "parent_span_id": f"{self.trace_id}-s0",
                    "name": step.action,
                    "kind": "TOOL",
                    "status": "OK" if step.changed else "ERROR",
                    "input": _json({"ahead": before.ahead, "carrying": before.carrying}),
                    "output": _json(step.after.text() if step.changed else "no effect"),
                    "started_at": started_at,
                    "ended_at": self.clock.spend(200, 700),
                }
            )
        return spans, steps

    def _announce(self, before: View, steps: list[Step], spans: list[dict[str, Any]], started_at: int) -> None:
        """Add the trace's line."""
        ended_at = self.clock.spend(10, 40)
        took = ", ".join(step.action for step in steps)
        common = {"input": _json(_seen(before, self.room.mission)), "output": _json(took)}
        times = {"started_at": started_at, "ended_at": ended_at}
        agent_span = {
            "span_id": f"{self.trace_id}-s0",
            "parent_span_id": None,
            "name": self.agent.kind,
            "kind": "AGENT",
            "status": "OK",
            "input": _json(before.text()),
            "output": common["output"],
            **times,
        }
        trace = {
            "trace_id": self.trace_id,
            "session_id": self.session_id,
            "project": self.agent.kind,
            "name": f"turn {self.turn}",
            "status": "COMPLETED",
            **times,
            "input": common["input"],
            "output": _json(steps[-1].after.text()),
            "metadata": self._metadata(),
            "tags": [self.mission.level],
            "spans": [agent_span, *spans],
            "turn_index": self.turn,
            "ends_turn": True,
        }
        self.lines.append((ended_at, trace))

    def _metadata(self) -> dict[str, Any]:
        """Say how to make this session again, and at its end what came of it."""
        metadata = {"seed": self.mission.seed, **self.agent.traits}
        if self.room.over:
            metadata["outcome"] = "solved" if self.room.solved else "failed"
        return metadata

    def _progress(self) -> tuple[float, str]:
        """Measure how much of the expert's way is behind the agent, in [0, 1]."""
        if self.room.solved:
            return 1.0, f"solved in {self.room.steps} steps"
        remaining = steps_needed(self.room.env)
        if remaining is None:
            return 0.0, "the goal is out of reach for good"
        share = 1 - remaining / self.mission.distance
        reason = f"{remaining} of {self.mission.distance} expert steps remain"
        return min(max(share, 0.0), 1.0), reason

    def _score(self, metric: str, value: float, reason: str) -> None:
        """Add a score's line."""
        created_at = self.clock.spend(20, 90)
        score = {
            "score_id": f"{self.trace_id}-{metric}",
            "session_id": self.session_id,
            "trace_id": self.trace_id,
            "target": "TRACE",
            "name": metric,
            "data_type": "NUMERIC",
            "value": str(round(value, 4)),
            "source": "PROGRAMMATIC",
            "status": "SUCCESS",
            "reason": reason,
            "metadata": {},
            "created_at": created_at,
        }
        self.lines.append((created_at, score))


def _seen(view: View, mission: str) -> dict[str, Any]:
    """Put together what the agent is told at the start of a trace."""
    return {
        "mission": mission,
        "position": view.position,
        "facing": view.facing,
        "ahead": view.ahead,
        "carrying": view.carrying,
    }


def _json(value: Any) -> str:
    """Write JSON text without spaces."""
    return json.dumps(value, separators=(",", ":"))
