"""BabyAI's bot as a player, and as the measure of how far a mission still is."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

from environment import settle
from minigrid.envs.babyai.core.verifier import PickupInstr
from minigrid.utils.baby_ai_bot import (
    BabyAIBot,
    DisappearedBoxError,
    DropSubgoal,
    GoNextToSubgoal,
    PickupSubgoal,
)

GIVE_UP_AFTER = 200  # steps; several times the longest mission recorded
Bot: Any = BabyAIBot  # its methods carry no types
LOST = (AssertionError, DisappearedBoxError, IndexError, TypeError)  # how the bot gives up


def goal_objects(env: Any) -> list[tuple[Any, Any]]:
    """List the (object to move, object to put it next to) pairs that solve the mission.

    The second is None for a mission that only asks to pick something up. A
    pair of which one object no longer exists is left out.
    """
    instr = env.instrs
    if isinstance(instr, PickupInstr):
        pairs = product(instr.desc.obj_set, [None])
    else:
        pairs = product(instr.desc_move.obj_set, instr.desc_fixed.obj_set)
    return [(move, fixed) for move, fixed in pairs if _exists(env, move) and (fixed is None or _exists(env, fixed))]


def _exists(env: Any, thing: Any) -> bool:
    """Tell whether an object is still in the room: a box that was opened is not."""
    return thing is env.carrying or env.grid.get(*thing.cur_pos) is thing


def bot_without_mission(env: Any) -> Any:
    """Make a bot that has seen the whole room and has nothing to do."""
    bot = Bot(env)
    bot.vis_mask[:] = True
    bot.stack = []
    return bot


def put_down(bot: Any, env: Any) -> None:
    """Tell a bot to first put down what it carries, if anything."""
    if env.carrying:
        bot.stack.append(DropSubgoal(bot))
        bot.stack.append(GoNextToSubgoal(bot, bot._find_drop_pos()))


def bot_from_here(env: Any, move: Any, fixed: Any) -> Any:
    """Make a bot that solves the mission from the present state with these objects.

    A new BabyAIBot assumes empty hands; this one may start with any object in
    hand, the right one included.
    """
    bot = bot_without_mission(env)
    if fixed is not None:
        bot.stack.append(DropSubgoal(bot))
        bot.stack.append(GoNextToSubgoal(bot, fixed, reason="PutNext"))
    if env.carrying is not move:
        bot.stack.append(PickupSubgoal(bot))
        bot.stack.append(GoNextToSubgoal(bot, move))
        put_down(bot, env)
    return bot


def steps_needed(env: Any) -> int | None:
    """Count the steps a bot that knows the room needs to solve the mission from here.

    It plays on a copy, once for every pair of objects that would do, and the
    fewest count. None: an object it takes is gone, it cannot be solved any
    more. Raises RuntimeError where the bot itself is at a loss, so that no
    such state gets a score.
    """
    counts = []
    pairs = len(goal_objects(env))
    for index in range(pairs):
        copied = copy.deepcopy(env)
        copied.max_steps = copied.step_count + GIVE_UP_AFTER
        count = _play(copied, bot_from_here(copied, *goal_objects(copied)[index]))
        if count is not None:
            counts.append(count)
    if pairs and not counts:
        raise RuntimeError("the bot finds no way to solve a mission that can be solved")
    return min(counts, default=None)


def _play(env: Any, bot: Any) -> int | None:
    """Let a bot play until the mission is solved and count its steps."""
    try:
        for count in range(1, GIVE_UP_AFTER):
            _, reward, terminated, _, _ = env.step(bot.replan())
            settle(env)
            if terminated:
                return count if reward > 0 else None
    except LOST:
        return None
    return None


class Pilot:
    """Advises an agent that need not listen: BabyAI's bot, kept informed.

    The bot starts as it comes and has to look around. Where it loses its plan
    over what the agent did, a new one continues from the state reached.
    """

    def __init__(self, env: Any) -> None:
        """Start with an uninformed bot."""
        self._env = env
        self._bot = Bot(env)

    def advise(self, taken: int | None) -> int | None:
        """Suggest the next action, given the last one taken; None when there is no way."""
        try:
            return self._checked(self._bot.replan(taken))
        except LOST:
            return self._start_over()

    def _start_over(self) -> int | None:
        for move, fixed in goal_objects(self._env):
            try:
                self._bot = bot_from_here(self._env, move, fixed)
                return self._checked(self._bot.replan())
            except LOST:
                continue
        return None

    def _checked(self, action: Any) -> int:
        """Refuse `done`: the mission is not, or the session would be over."""
        assert action != self._env.actions.done
        return int(action)
