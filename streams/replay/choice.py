"""Which part of a replay is shown: a stretch of the log, some sessions, some projects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from streams.agents.outbox import Output
from streams.core.ids import short_hash
from streams.core.model import Candidate

Offsets = tuple[int, int | None]
"""First and last offset, both included; without a last one, to the end."""


@dataclass(frozen=True)
class Choice:
    """What is asked for; what is not said is not asked for.

    since, until: record times in milliseconds, the end not included.
    offsets: partition -> stretch; partitions not named are left out.
    half: `a` or `b`: of all sessions those whose names fall into that half, for choosing on one and judging on the other.
    cold: begin to fold at the start of the stretch, with nothing known from before; else all is folded from the
        start of the log, so that each decision knows what it knew live.
    """

    since: int | None = None
    until: int | None = None
    offsets: Mapping[int, Offsets] = field(default_factory=dict)
    sessions: frozenset[str] = frozenset()
    half: str | None = None
    projects: frozenset[str] = frozenset()
    cold: bool = False

    def is_past(self, partition: int, offset: int, time: int) -> bool:
        """Whether a record lies after all that is asked for."""
        if self.until is not None and time >= self.until:
            return True
        if not self.offsets:
            return False
        last = self.offsets.get(partition, (0, -1))[1]
        return last is not None and offset > last

    def covers(self, partition: int, offset: int, time: int) -> bool:
        """Whether what a record decides is shown."""
        if self.is_past(partition, offset, time) or (self.since is not None and time < self.since):
            return False
        return not self.offsets or offset >= self.offsets[partition][0]

    def shows(self, output: Output) -> bool:
        """Whether the output belongs to a session and a project that are asked for."""
        subject = output.notice if isinstance(output, Candidate) else output
        if self.half is not None and (subject.session_id is None or half_of(subject.session_id) != self.half):
            return False
        return (not self.sessions or subject.session_id in self.sessions) and (
            not self.projects or subject.project in self.projects
        )


def half_of(session_id: str) -> str:
    """Return the half that a session falls into by its name: `a` or `b`."""
    return "ab"[short_hash(f"half/{session_id}") % 2]


EVERYTHING: Final = Choice()
