"""What a worker asks the broker before it starts anything."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streams import admin
from streams.engine import Abilities, Connection, abilities
from streams.security import connection
from streams.settings import Settings
from streams.topics import DETECTION


@dataclass(frozen=True)
class Ready:
    """What the broker answered before anything was started."""

    connection: Connection
    abilities: Abilities
    counts: Mapping[str, int]
    """Topic by default name -> partitions."""


async def prepare(settings: Settings, roles: Collection[str] = DETECTION) -> Ready:
    """Ask the broker what it can do and whether the topics are as the stages need them.

    roles: the topics that they use, by default name.

    Raises:
        TopicsWrong: they are not; the message says what to do.
        KafkaError: the broker does not answer.
    """
    reach = connection(settings)
    able = await abilities(reach)
    found = await admin.check(reach, settings, roles)
    return Ready(reach, able, {role: item.partitions or 0 for role, item in found.items()})
