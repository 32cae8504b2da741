"""Blocks of a help page that keep their lines."""

from typing import Final

_KEEP_LINES: Final = "\b\n"


def examples(*lines: str) -> str:
    """Return command lines as the last part of a help page."""
    return block("Examples:", *(f"  {line}" for line in lines))


def block(*lines: str) -> str:
    """Return lines that click does not wrap."""
    return _KEEP_LINES + "\n".join(lines)
