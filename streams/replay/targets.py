"""Where a replay's outputs go: files, or topics with names of their own."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Protocol, Self

from streams import admin
from streams.agents.outbox import ROLES, Outbox, Output
from streams.engine import Publisher, abilities
from streams.errors import BadSettings
from streams.security import connection
from streams.settings import Settings
from streams.topics import BY_ROLE, DETECTION, JOURNAL, NOTICES, TURN_REPORTS, named
from streams.wire import Format, Wire

ALWAYS: Final = (NOTICES, TURN_REPORTS, JOURNAL)
"""Files that are there also when nothing was put out."""


class Target(Protocol):
    """Takes outputs in their order."""

    async def write(self, outputs: Sequence[Output]) -> None:
        """Write outputs; they are there when this returns."""

    async def close(self) -> None:
        """Finish."""


class Files:
    """One file a topic, named after it, one JSON object a line."""

    def __init__(self, folder: Path, wire: Wire) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._wire = wire
        self._files: dict[str, BinaryIO] = {role: self._open(role) for role in ALWAYS}

    async def write(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            role = ROLES[type(output)]
            if role not in self._files:
                self._files[role] = self._open(role)
            self._files[role].write(self._wire.write(output, Format.JSON) + b"\n")

    async def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _open(self, role: str) -> BinaryIO:
        return (self._folder / f"{role}.jsonl").open("wb")


class Topics:
    """Topics named with a prefix, created where they are missing; never those that the stages write."""

    def __init__(self, settings: Settings, prefix: str) -> None:
        self._settings = prefixed(settings, prefix)

    async def open(self) -> Self:
        """Create what is missing, and connect."""
        reach = connection(self._settings)
        refused = await admin.create(reach, self._settings, DETECTION.intersection(ROLES.values()))
        if said := [f"{name}: {answer}" for name, answer in refused.items() if answer.startswith("refused")]:
            raise BadSettings(f"topics for the replay cannot be created: {', '.join(said)}")
        found = await admin.find(reach, self._settings)
        counts = {role: item.partitions or 1 for role, item in found.items()}
        self._outbox = Outbox(Wire.of(self._settings), named(self._settings.topic_names), counts)
        fences = (await abilities(reach)).fences
        self._publisher = Publisher(reach, idempotent=fences, max_record=self._settings.max_record_bytes)
        return self

    async def write(self, outputs: Sequence[Output]) -> None:
        await self._publisher.publish([self._outbox.record(output) for output in outputs])

    async def close(self) -> None:
        await self._publisher.stop()


def prefixed(settings: Settings, prefix: str, roles: Collection[str] = BY_ROLE.keys()) -> Settings:
    """Return the settings with the names of topics, every one's or some roles', behind a prefix.

    Raises:
        BadSettings: a name would be one that the stages use, or none that Kafka allows.
    """
    known: Mapping[str, str] = {role: settings.topic_names.get(role, role) for role in BY_ROLE}
    names = {role: prefix + name for role, name in known.items() if role in roles}
    taken = sorted(set(names.values()) & {*known.values(), *BY_ROLE})
    if not prefix or taken:
        raise BadSettings(f"a prefix is needed that leads to other topics than {', '.join(taken) or 'the stages use'}")
    values = settings.model_dump() | {"topic_names": {**settings.topic_names, **names}}
    try:
        return Settings.model_validate(values)
    except ValueError as error:
        raise BadSettings(f"prefix {prefix!r}: {error}") from None
