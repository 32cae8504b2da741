"""The embedder that needs no network: wordllama, 256 numbers a text, its weights in its own wheel."""

import asyncio
import importlib.util
import logging
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from streams.errors import EndpointFailed, PartMissing
from streams.evaluators.embedding import Embedded
from streams.evaluators.signals import Vector

_AT_ONCE: Final = 16
"""Texts of one call: it takes memory for each token of the longest, times this."""


class WordLlama:
    """Averages of word vectors: computed in a thread of its own, so that the event loop goes on.

    Raises:
        PartMissing: the package is not installed.
    """

    name = "wordllama"
    model = "l2_supercat_256"

    def __init__(self) -> None:
        if importlib.util.find_spec("wordllama") is None:
            raise PartMissing(
                "embedder = wordllama needs wordllama: pip install 'trajectory-gate[embeddings]', "
                "or name an endpoint: embedder = openai"
            )
        # One thread: the tokenizer is not made for several, and there is one to load it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="wordllama")
        self._loaded: Any = None

    async def vectors(self, texts: Sequence[str]) -> Embedded:
        """Return the vectors of some texts; one without a single known piece of a word has no direction: zeros.

        Raises:
            EndpointFailed: the model cannot be loaded.
        """
        made: list[Vector] = []
        for first in range(0, len(texts), _AT_ONCE):
            some = list(texts[first : first + _AT_ONCE])
            made += await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, some)
        return Embedded(tuple(made))

    async def probe(self) -> None:
        """Load the model and embed a word.

        Raises:
            EndpointFailed: the model cannot be loaded.
        """
        await self.vectors(["ready"])

    async def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: list[str]) -> list[Vector]:
        if self._loaded is None:
            self._loaded = _load()
        return [array("d", vector) for vector in self._loaded.embed(texts).tolist()]


def _load() -> Any:
    # Importing it sets up logging to stderr where nobody has; a handler that does nothing keeps it from that.
    silent = logging.NullHandler()
    logging.root.addHandler(silent)
    try:
        import wordllama  # noqa: PLC0415  (an extra, and a second to import)

        # Its weights lie in its package. Left to itself it would look in the home directory and then on the network.
        return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    except Exception as error:
        # Whatever is wrong with the installation: its scores are FAILED, the rest goes on.
        raise EndpointFailed(f"wordllama cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        logging.root.removeHandler(silent)
