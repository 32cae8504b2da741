"""Ids as functions of content, so that a repeat, a restart or a replay finds the same ones."""

from hashlib import blake2b


def digest(*parts: str | int) -> str:
    """Return 32 hexadecimal digits for *parts*; each part counts with its length, so none can run into the next."""
    joined = "".join([f"{len(text)}:{text}" for text in [str(part) for part in parts]])
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def short_hash(text: str) -> int:
    """Return 8 bytes of hash as a signed integer: enough to recognise one of the last 128 ids of a session."""
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "big", signed=True)
