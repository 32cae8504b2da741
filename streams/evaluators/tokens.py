"""What a request took, as an endpoint says it."""

from typing import Any, Final

_CHARACTERS_A_TOKEN: Final = 4


def tokens(answer: Any, name: str) -> int:
    """Return a count from an answer's usage; 0 where it does not say."""
    value = getattr(getattr(answer, "usage", None), name, None)
    return value if isinstance(value, int) and value > 0 else 0


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text is: for endpoints that do not say, so that limits hold there as well."""
    return len(text) // _CHARACTERS_A_TOKEN
