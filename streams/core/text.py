"""Untrusted text made fit for a notice, a terminal or a page: printable and short."""

from typing import Final

MAX_ID_BYTES: Final = 256
MAX_REASON_BYTES: Final = 256
MAX_INPUT_BYTES: Final = 1024


def plain(text: str, limit: int) -> str:
    """Return *text* without control characters and cut to at most *limit* UTF-8 bytes.

    Every character that Python calls unprintable (control and format characters, terminal
    escapes, bidirectional overrides, lone surrogates) becomes one space.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return cut(text, limit)


def cut(text: str, limit: int) -> str:
    """Return the longest start of *text* that takes at most *limit* UTF-8 bytes."""
    if len(text) * 4 <= limit:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else encoded[:limit].decode("utf-8", "ignore")
