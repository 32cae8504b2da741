"""A cache for functions of classes."""

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def once(make: Callable[P, R]) -> Callable[P, R]:
    """Make *make* run once for the same arguments; `functools.cache`, whose type does not take classes as hashable."""
    return cast("Callable[P, R]", cache(make))
