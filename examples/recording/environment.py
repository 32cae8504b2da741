"""One BabyAI mission in one room: what an agent does there and what comes of it."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import Any

import gymnasium
import minigrid  # noqa: F401  (importing it registers the BabyAI levels)

ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")
FACINGS = ("east", "south", "west", "north")


@dataclass(frozen=True)
class View:
    """What matters about the room at one moment, in words."""

    position: tuple[int, int]
    facing: str
    ahead: str
    carrying: str

    def text(self) -> str:
        """Say the view in one short line."""
        x, y = self.position
        return f"at {x},{y} facing {self.facing}, ahead {self.ahead}, carrying {self.carrying}"


@dataclass(frozen=True)
class Step:
    """One action, and whether it changed anything in the room."""

    action: str
    changed: bool
    after: View


class Room:
    """A BabyAI level at a seed, with a step limit.

    `env` is the environment itself, without gymnasium's wrappers, for the
    agents that plan in it.
    """

    def __init__(self, level: str, seed: int, step_limit: int) -> None:
        """Make the room; the same level and seed give the same room."""
        self.env: Any = gymnasium.make(level, max_steps=step_limit).unwrapped
        with contextlib.redirect_stdout(io.StringIO()):  # rejected layouts are printed
            self.env.reset(seed=seed)
        self.solved = False
        self.over = False

    @property
    def mission(self) -> str:
        """The task in BabyAI's language."""
        return str(self.env.mission)

    @property
    def steps(self) -> int:
        """How many actions were taken so far."""
        return int(self.env.step_count)

    def view(self) -> View:
        """Describe the room as it is now."""
        env = self.env
        x, y = env.agent_pos
        return View(
            position=(int(x), int(y)),
            facing=FACINGS[env.agent_dir],
            ahead=_named(env.grid.get(*env.front_pos)),
            carrying=_named(env.carrying),
        )

    def act(self, action: int) -> Step:
        """Take one action and note what it changed."""
        before = self._state()
        _, reward, terminated, truncated, _ = self.env.step(action)
        settle(self.env)
        self.solved = bool(terminated and reward > 0)
        self.over = bool(terminated or truncated)
        return Step(ACTIONS[action], self._state() != before, self.view())

    def _state(self) -> tuple[Any, ...]:
        """Everything an action can change."""
        env = self.env
        position = tuple(int(part) for part in env.agent_pos)
        return position, int(env.agent_dir), _named(env.carrying), env.grid.encode().tobytes()


def settle(env: Any) -> None:
    """Give an object just put down a plain position; the bot fails on an array."""
    ahead = env.grid.get(*env.front_pos)
    if ahead is not None and ahead.cur_pos is not None:
        ahead.cur_pos = tuple(int(part) for part in ahead.cur_pos)


def _named(thing: Any) -> str:
    """Name an object of the grid by its color and type."""
    if thing is None:
        return "nothing"
    return str(thing.type) if thing.type == "wall" else f"{thing.color} {thing.type}"
