"""How one client reaches the broker: its settings, its connection, and what the broker is able to do, asked once."""

import asyncio

from streams.engine import Connection, abilities
from streams.security import connection
from streams.settings import Settings


class Reach:
    """Shared by everything that one gate runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.connection: Connection = connection(settings)
        self._asking = asyncio.Lock()
        self._fences: bool | None = None

    async def fences(self) -> bool:
        """Return whether the broker has transactions; where not, its offsets by time cannot be trusted either.

        Raises:
            KafkaError: the broker does not answer.
        """
        async with self._asking:
            if self._fences is None:
                self._fences = (await abilities(self.connection)).fences
            return self._fences
