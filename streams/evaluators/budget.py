"""What a session, or a part of a run, may still be judged for."""

from typing import Final

from streams.core.eval_requests import over_limit
from streams.evaluators.evaluation import Usage

_LIMITS: Final = {"max_evals": "judgements", "max_eval_tokens": "tokens"}


class Budget:
    """Counts what has been started, not only what is stored: judgements of one owner go on side by side.

    owner: in words, for reasons. evals, tokens: spent before. max_evals, max_tokens: see over_limit.
    """

    def __init__(self, owner: str, evals: int, tokens: int, max_evals: int, max_tokens: int) -> None:
        self._owner = owner
        self._spent = {"max_evals": evals, "max_eval_tokens": tokens}
        self._most = {"max_evals": max_evals, "max_eval_tokens": max_tokens}
        self.refused: set[str] = set()
        """The limits that were met."""

    def take(self) -> str:
        """Take one judgement; returns the name of the limit that forbids it, empty where none does."""
        limit = over_limit(*self._spent.values(), *self._most.values())
        if not limit:
            self._spent["max_evals"] += 1
        return limit

    def used(self, usage: Usage) -> None:
        """Count what a judgement took."""
        self._spent["max_eval_tokens"] += usage.input_tokens + usage.output_tokens

    def refusal(self, limit: str) -> str:
        """Say in words which limit forbids a judgement."""
        most = max(0, self._most[limit])
        return f"{limit}: {self._owner} may cost {most} {_LIMITS[limit]} and has had {self._spent[limit]}"
