"""Sets of small numbers as 63 bits to a signed 64-bit integer, the lowest bit first: how states note what is done."""

from typing import Final

_WORD: Final = 63

Bits = tuple[int, ...]


def with_bit(words: Bits, number: int) -> Bits:
    """Return *words* with one more number in the set; the very same ones when it is there already."""
    index, bit = divmod(number, _WORD)
    padded = words + (0,) * (index + 1 - len(words))
    if padded[index] >> bit & 1:
        return words
    return (*padded[:index], padded[index] | 1 << bit, *padded[index + 1 :])


def has_bit(words: Bits, number: int) -> bool:
    """Whether a number is in the set."""
    index, bit = divmod(number, _WORD)
    return index < len(words) and bool(words[index] >> bit & 1)


def count(words: Bits) -> int:
    """Return how many numbers are in the set."""
    return sum(word.bit_count() for word in words)
