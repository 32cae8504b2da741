"""How a turn landed, as a client sees it."""

from dataclasses import dataclass, field
from enum import StrEnum

from streams.core.model import Decision, Notice, Outcome, Report, TurnSettled

_REPORTED = frozenset(Decision)


class SettleState(StrEnum):
    """What `settle` found."""

    LANDED = "landed"
    """The diagnosis is there."""
    TIMED_OUT = "timed_out"
    """It has not come in time; the work on it goes on."""
    NOTHING_PUBLISHED = "nothing_published"
    """No turn was named, and this client has published none for the session."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """A turn's diagnosis, or what is known of it so far.

    report: none for a turn that a cost control left out, and where it is not kept any more.
    notices: what was posted about the turn.
    """

    session_id: str
    turn_id: str | None
    state: SettleState
    settled: TurnSettled | None = None
    report: Report | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def timed_out(self) -> bool:
        return self.state is SettleState.TIMED_OUT

    @property
    def outcome(self) -> Outcome | None:
        """How it landed: none, posted, suppressed, needs_human or shadow."""
        return None if self.settled is None else self.settled.outcome


@dataclass(slots=True)
class Landing:
    """What has been read of one turn."""

    settled: TurnSettled | None = None
    report: Report | None = None
    notices: dict[str, Notice] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether all that belongs to the turn is there: its records stand in topics of their own."""
        settled = self.settled
        if settled is None:
            return False
        if settled.outcome is Outcome.POSTED and settled.notice_id not in self.notices:
            return False
        # A turn with a candidate settles with its severity as reason; one that was left out has no report.
        reported = settled.notice_id is not None or settled.reason in _REPORTED
        return self.report is not None or not reported

    def settlement(self, session_id: str, turn_id: str, state: SettleState) -> Settlement:
        return Settlement(session_id, turn_id, state, self.settled, self.report, tuple(self.notices.values()))
