"""Texts as vectors: a small model on this machine, or an OpenAI-compatible endpoint; each text is embedded once."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Protocol

from streams.evaluators.evaluation import Usage
from streams.evaluators.signals import Vector

MAX_CHARACTERS: Final = 8_000
"""A longer text is embedded by its start: within what every model takes, and a vector of more says no more."""
MAX_CACHED: Final = 4_096
"""Vectors kept: 2 KiB each for 256 numbers."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of their texts."""

    vectors: tuple[Vector, ...]
    usage: Usage = field(default_factory=Usage)
    cut: bool = False
    """Whether a text was longer than MAX_CHARACTERS."""


class Model(Protocol):
    """What makes vectors."""

    name: str
    """As the setting `embedder` has it."""
    model: str

    async def vectors(self, texts: Sequence[str]) -> Embedded:
        """Return the vectors of some texts, none empty.

        Raises:
            EndpointFailed: there are none.
        """

    async def probe(self) -> None:
        """Embed a word.

        Raises:
            EndpointFailed: that did not work.
        """

    async def close(self) -> None:
        """Let go of connections and threads."""


class Embedder:
    """Makes vectors of texts, and remembers the last MAX_CACHED by a hash of the text."""

    def __init__(self, model: Model, *, max_cached: int = MAX_CACHED) -> None:
        self._model, self._max_cached = model, max_cached
        self._known: OrderedDict[bytes, Vector] = OrderedDict()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return the vectors of some texts; only what is not known is asked for, all of it at once.

        Raises:
            EndpointFailed: there are none.
        """
        starts = [text[:MAX_CHARACTERS] for text in texts]
        marks = [_mark(start) for start in starts]
        known = {mark: self._known[mark] for mark in marks if mark in self._known}
        unknown = {mark: start for mark, start in zip(marks, starts, strict=True) if mark not in known}
        made = await self._model.vectors(list(unknown.values())) if unknown else Embedded(())
        known.update(zip(unknown, made.vectors, strict=True))
        self._remember(known)
        cut = any(len(text) > MAX_CHARACTERS for text in texts)
        return Embedded(tuple(known[mark] for mark in marks), made.usage, cut)

    async def probe(self) -> None:
        """Embed a word.

        Raises:
            EndpointFailed: that did not work.
        """
        await self._model.probe()

    @property
    def metadata(self) -> dict[str, Any]:
        """What a score says of it."""
        return {"embedder": self._model.name, "model": self._model.model}

    async def close(self) -> None:
        """Let go of connections and threads."""
        await self._model.close()

    def _remember(self, used: dict[bytes, Vector]) -> None:
        for mark, vector in used.items():
            self._known[mark] = vector
            self._known.move_to_end(mark)
        while len(self._known) > self._max_cached:
            self._known.popitem(last=False)


def _mark(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
