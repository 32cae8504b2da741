"""Ids as functions of content, so that a repeat, a restart or a replay finds the same ones."""

import struct
from hashlib import blake2b
from typing import Final

_SIGNED: Final = struct.Struct(">q")


def digest(*parts: str | int) -> str:
    """Return 32 hexadecimal digits for *parts*; each part counts with its length, so none can run into the next."""
    joined = ""
    for part in parts:
        text = str(part)
        joined += f"{len(text)}:{text}"
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def short_hash(text: str) -> int:
    """Return 8 bytes of hash as a signed integer: enough to recognise one of the last 128 ids of a session."""
    found: int = _SIGNED.unpack(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())[0]
    return found
