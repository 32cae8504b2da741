"""An OpenAI-compatible embeddings endpoint."""

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from streams.evaluators.embedding import Embedded
from streams.evaluators.endpoint import Endpoint
from streams.evaluators.evaluation import Usage
from streams.evaluators.refusals import Unusable
from streams.evaluators.signals import Vector
from streams.evaluators.tokens import estimated_tokens, tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_AT_ONCE: Final = 64
"""Texts of one request."""


class EmbeddingEndpoint:
    """Vectors by a model behind an endpoint."""

    name = "openai"

    def __init__(self, endpoint: Endpoint, model: str, price: float = 0.0) -> None:
        """Prepare; nothing is sent yet.

        price: of a million tokens.
        """
        self._endpoint, self.model, self._price = endpoint, model, price

    async def vectors(self, texts: Sequence[str]) -> Embedded:
        """Return the vectors of some texts, none empty.

        Raises:
            EndpointFailed: the endpoint does not answer, or not with one vector of finite numbers for each.
        """
        made: list[Vector] = []
        usage = Usage()
        for first in range(0, len(texts), _AT_ONCE):
            some = list(texts[first : first + _AT_ONCE])
            vectors, used = await self._ask(some)
            made += vectors
            usage += used
        return Embedded(tuple(made), usage)

    async def probe(self) -> None:
        """Embed a word.

        Raises:
            EndpointFailed: that did not work, or took too long.
        """
        await self._ask(["ready"], probe=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def _ask(self, texts: list[str], *, probe: bool = False) -> tuple[list[Vector], Usage]:
        async def send(client: "AsyncOpenAI", _: str) -> Any:
            # Left to itself the package asks for base64, which few others know.
            return await client.embeddings.create(model=self.model, input=texts, encoding_format="float")

        def read(answer: Any) -> tuple[Any, list[Vector]]:
            return answer, _vectors(answer, len(texts))

        answer, vectors = await self._endpoint.ask(send, read, probe=probe)
        taken = tokens(answer, "prompt_tokens") or estimated_tokens("".join(texts))
        return vectors, Usage(taken, 0, 1, taken * self._price / 1_000_000)


def _vectors(answer: Any, expected: int) -> list[Vector]:
    """Return the vectors of an answer, in the order of the texts.

    Raises:
        Unusable: they are not as many as the texts, or not all finite numbers.
    """
    try:
        found = sorted(answer.data, key=lambda item: item.index)
        vectors: list[Vector] = [array("d", item.embedding) for item in found]
    except (AttributeError, TypeError):
        raise Unusable("it holds no embeddings") from None
    if [item.index for item in found] != list(range(expected)):
        raise Unusable(f"it holds {len(found)} embeddings for {expected} texts")
    if not all(vector and all(map(math.isfinite, vector)) for vector in vectors):
        raise Unusable("it holds an embedding that is empty, or with a number that is not finite")
    return vectors
