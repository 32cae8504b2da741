"""A session of a recorded kind of agent that publishes as it goes, and may act on what it is told.

What an agent can do when told: plan anew from where it is, go back to the state before the trace that lost ground, or
hand over and stop. Its flaw stays: after a while it shows again.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from agents import KINDS, Agent
from environment import Room
from expert import Pilot, bot_without_mission, steps_needed
from record import LEVELS, SHORTEST_MISSION
from session import STEP_LIMIT, STEPS_PER_TRACE, Mission

from streams.client import Gate, Notice, TraceRecorder

FIRST_SEED = 1000
"""Fixed before the first run; the recording's missions are far below."""
HAND_OVER_AFTER = 3
"""Notices in one session after which the agent gives up and hands over."""
UNSCORED = ("coherence", "argument_correctness")
"""Asked for by default and not measured here: said to have failed, so that nobody waits for them."""


@dataclass(frozen=True)
class Plan:
    """A kind of agent at a mission."""

    kind: type[Agent]
    mission: Mission

    @property
    def name(self) -> str:
        return f"{self.kind.kind}-{self.mission.level}-{self.mission.seed}"


@dataclass(frozen=True)
class Played:
    """What came of a session."""

    kind: str
    solved: bool
    steps: int
    notices: int
    handed_over: bool


def chosen(missions: int) -> Iterator[Plan]:
    """Take the first missions from the fixed seed on that are long enough to go wrong in, for every kind of agent."""
    for level in LEVELS:
        seed, found = FIRST_SEED, 0
        while found < missions:
            distance = steps_needed(Room(level, seed, STEP_LIMIT).env)
            if distance is not None and distance >= SHORTEST_MISSION:
                found += 1
                yield from (Plan(kind, Mission(level, seed, distance)) for kind in KINDS)
            seed += 1


class Dispatch:
    """One subscription for all sessions of this process; each asks for its own."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._queues: defaultdict[str, asyncio.Queue[Notice]] = defaultdict(asyncio.Queue)

    async def __aenter__(self) -> Self:
        self._notices = await self._gate.notices().__aenter__()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await self._notices.aclose()

    async def of(self, session: str) -> Notice:
        """Wait for the session's next notice."""
        return await self._queues[session].get()

    async def _run(self) -> None:
        async for notice in self._notices:
            self._queues[notice.session_id].put_nowait(notice)


class ListeningSession:
    """Plays one session; the same plan makes the same draws, listening or not, until the first notice."""

    def __init__(self, gate: Gate, dispatch: Dispatch, plan: Plan, *, listening: bool) -> None:
        self._gate, self._dispatch, self._plan, self._listening = gate, dispatch, plan, listening
        # Another run beside the same worker must not meet the state of this one.
        self._session = f"{plan.name}-{'listening' if listening else 'deaf'}-{secrets.token_hex(4)}"
        self._room = Room(plan.mission.level, plan.mission.seed, STEP_LIMIT)
        self._agent = plan.kind(self._room, plan.mission.distance, Random(plan.name))
        self._again = Random(f"{plan.name} again")
        self._before: dict[str, Any] = {}
        """Trace id -> the room as it was before it."""
        self._notices = 0
        self._handed_over = False

    async def play(self) -> Played:
        """Act, publish every few actions, and listen or not, until it is over."""
        while not self._room.over and not self._handed_over:
            found = await self._turn()
            if found is None:
                continue
            self._notices += 1
            if self._listening and not self._room.over:
                self._act_on(found)
        return Played(self._plan.kind.kind, self._room.solved, self._room.steps, self._notices, self._handed_over)

    async def _turn(self) -> Notice | None:
        """Take a few actions as one trace with its scores; returns what was noticed about it."""
        # A project of its own: the circuit breaker counts per project, and sessions must not silence each other.
        async with self._gate.trace(self._session, "turn", project=self._session) as trace:
            trace.input = {"mission": self._room.mission, "seen": self._room.view().text()}
            self._before[trace.trace_id] = copy.deepcopy(self._room.env)
            effective, taken = self._steps(trace)
            trace.output = self._room.view().text()
            trace.score("task_completion", self._progress())
            trace.score("tool_correctness", effective / taken)
            for metric in UNSCORED:
                trace.score(metric, None)
        settled = await self._gate.settle(self._session, trace.turn_id)
        if settled.timed_out:
            raise RuntimeError(f"{trace.turn_id} has no diagnosis: does a worker run?")
        return await self._dispatch.of(self._session) if settled.outcome == "posted" else None

    def _steps(self, trace: TraceRecorder) -> tuple[int, int]:
        effective = taken = 0
        while taken < STEPS_PER_TRACE and not self._room.over:
            ahead = self._room.view().ahead
            step = self._room.act(self._agent.act())
            with trace.span(step.action, "TOOL", input={"ahead": ahead}) as span:
                span.output = step.after.text() if step.changed else "no effect"
                span.status = "OK" if step.changed else "ERROR"
            taken += 1
            effective += step.changed
        return effective, taken

    def _progress(self) -> float:
        if self._room.solved:
            return 1.0
        remaining = steps_needed(self._room.env)
        share = 0.0 if remaining is None else 1 - remaining / self._plan.mission.distance
        return round(min(max(share, 0.0), 1.0), 4)

    def _act_on(self, notice: Notice) -> None:
        if self._notices >= HAND_OVER_AFTER:
            self._handed_over = True
            return
        lost_ground = any(signature.startswith("regression:") for signature in notice.signatures)
        if lost_ground and notice.flagged_traces and notice.flagged_traces[0] in self._before:
            self._go_back(self._before[notice.flagged_traces[0]])
        self._plan_anew()

    def _go_back(self, state: Any) -> None:
        steps = self._room.env.step_count
        self._room.env = copy.deepcopy(state)
        self._room.env.step_count = steps  # what was spent stays spent

    def _plan_anew(self) -> None:
        """Forget the plan and the habit; the flaw comes again after as long as it took the first time."""
        agent, distance = self._agent, self._plan.mission.distance
        agent.pilot, agent.taken = Pilot(self._room.env), None
        if "stuck_after" in agent.traits:
            agent.traits["stuck_after"] = self._room.steps + round(distance * self._again.uniform(0.1, 0.7))
        if "derailed_after" in agent.traits:
            agent.traits["derailed_after"] = self._room.steps + round(distance * self._again.uniform(0.4, 0.8))
            vars(agent)["wanderer"] = bot_without_mission(self._room.env)
