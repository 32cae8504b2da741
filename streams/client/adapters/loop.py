"""A loop of your own: each turn a trace, and what the gate has said since the last one as text for the model."""

from types import TracebackType
from typing import Any, Self

from streams.client.gate import Gate
from streams.client.instruction import LENGTH, instruction
from streams.client.recorder import TraceRecorder
from streams.client.subscription import Subscription
from streams.core.model import NeedsHuman, Notice


class AgentLoop:
    """Used as `async with AgentLoop(gate, session) as loop`: `loop.turn()` records one, `loop.take()` says what was noticed."""

    def __init__(self, gate: Gate, session: str, *, name: str = "turn", project: str | None = None) -> None:
        self._gate, self.session, self._name = gate, session, name
        self._project = project or gate.project
        self._count = 0
        self._notices: Subscription[Notice]
        self._calls: Subscription[NeedsHuman]
        self.stopped = False
        """Whether a person has been called for: the agent should stop."""

    async def __aenter__(self) -> Self:
        # Begun, not waited for: a broker that is away must not hold up the agent.
        self._notices = self._gate.notices(self.session)
        self._calls = self._gate.needs_human(self._project)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._notices.aclose()
        await self._calls.aclose()

    def turn(self, name: str | None = None, **fields: Any) -> TraceRecorder:
        """Return the next turn's trace, to be entered; fields as for Gate.trace."""
        made = self._gate.trace(
            self.session, name or self._name, turn_index=self._count, project=self._project, **fields
        )
        self._count += 1
        return made

    def take(self, limit: int = LENGTH) -> list[str]:
        """Return what was noticed since the last call, each as a block for the model's context; never waits."""
        calls = self._calls.take()
        self.stopped = self.stopped or bool(calls)
        said = [instruction(call, limit) for call in calls]
        return [*said, *(instruction(notice, limit) for notice in self._notices.take())]
