"""The five kinds of agents: one that works, and four ways to fall short."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import Any

from environment import ACTIONS, Room
from expert import LOST, Pilot, bot_without_mission, goal_objects, put_down
from minigrid.utils.baby_ai_bot import DropSubgoal, GoNextToSubgoal, PickupSubgoal

LEFT, RIGHT, FORWARD, PICKUP = 0, 1, 2, 3


class Agent(ABC):
    """Chooses one action at a time; what makes this one special is in `traits`."""

    kind = ""

    def __init__(self, room: Room, distance: int, chance: Random) -> None:
        """Enter a room; `distance` is how many steps the expert needs there."""
        self.room = room
        self.chance = chance
        self.traits: dict[str, Any] = {}
        self.taken: int | None = None
        self.pilot = Pilot(room.env)

    def act(self) -> int:
        """Choose the next action, to be taken at once."""
        self.taken = self.choose()
        return self.taken

    @abstractmethod
    def choose(self) -> int:
        """Choose the next action."""

    def advised(self) -> int:
        """Return what the expert would do, or any action where it is at a loss."""
        action = self.pilot.advise(self.taken)
        return self.any_action() if action is None else action

    def any_action(self) -> int:
        """Choose blindly."""
        return self.chance.randrange(len(ACTIONS))


class Expert(Agent):
    """Does what BabyAI's bot says."""

    kind = "expert"

    def choose(self) -> int:
        """Follow the expert."""
        return self.advised()


class Noisy(Agent):
    """Follows the bot, except for a share of actions taken blindly."""

    kind = "noisy"

    def __init__(self, room: Room, distance: int, chance: Random) -> None:
        """Draw how noisy this one is."""
        super().__init__(room, distance, chance)
        self.traits = {"noise": chance.choice([0.3, 0.5, 0.7])}

    def choose(self) -> int:
        """Follow the expert or not."""
        advised = self.advised()  # always asked, so that it sees every action
        return self.any_action() if self.chance.random() < self.traits["noise"] else advised


class Blind(Agent):
    """Acts at random."""

    kind = "random"

    def choose(self) -> int:
        """Choose blindly."""
        return self.any_action()


class Repeater(Agent):
    """Follows the bot for a while, then does the same thing over and over."""

    kind = "repeater"
    loops = ((FORWARD,), (PICKUP,), (LEFT,), (LEFT, RIGHT))

    def __init__(self, room: Room, distance: int, chance: Random) -> None:
        """Draw when it gets stuck and in what."""
        super().__init__(room, distance, chance)
        self.loop = chance.choice(self.loops)
        stuck_after = round(distance * chance.uniform(0.1, 0.7))
        names = [ACTIONS[action] for action in self.loop]
        self.traits = {"stuck_after": stuck_after, "loop": names}

    def choose(self) -> int:
        """Follow the expert until stuck."""
        turns = self.room.steps - int(self.traits["stuck_after"])
        return self.advised() if turns < 0 else self.loop[turns % len(self.loop)]


class Derailed(Agent):
    """Follows the bot to midway, then moves things about that nobody asked for."""

    kind = "derailed"

    def __init__(self, room: Room, distance: int, chance: Random) -> None:
        """Draw when it leaves the track."""
        super().__init__(room, distance, chance)
        self.traits = {"derailed_after": round(distance * chance.uniform(0.4, 0.8))}
        self.wanderer = bot_without_mission(room.env)

    def choose(self) -> int:
        """Follow the expert until derailed, then errands of its own."""
        if self.room.steps < self.traits["derailed_after"]:
            return self.advised()
        for _ in range(10):  # an errand may be impossible, or end at once
            try:
                if not self.wanderer.stack:
                    self._find_errand()
                action = int(self.wanderer.replan())
                if action != self.room.env.actions.done:
                    return action
            except LOST:
                self.wanderer.stack = []
        return self.any_action()

    def _find_errand(self) -> None:
        """Take some object the mission does not name to some other place."""
        env, bot = self.room.env, self.wanderer
        wanted = [id(thing) for pair in goal_objects(env) for thing in pair]
        cells = [(x, y) for x in range(env.width) for y in range(env.height)]
        things = [env.grid.get(*cell) for cell in cells]
        others = [thing for thing in things if thing and thing.can_pickup() and id(thing) not in wanted]
        free = [cell for cell, thing in zip(cells, things, strict=True) if thing is None]
        bot.stack.append(DropSubgoal(bot))
        bot.stack.append(GoNextToSubgoal(bot, self.chance.choice(free)))
        bot.stack.append(PickupSubgoal(bot))
        bot.stack.append(GoNextToSubgoal(bot, self.chance.choice(others)))
        put_down(bot, env)


KINDS: tuple[type[Agent], ...] = (Expert, Noisy, Blind, Repeater, Derailed)
