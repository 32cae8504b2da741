"""What a replay found, on the screen: notices as they come, counts at the end, differences as a table."""

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from streams.agents.outbox import Output
from streams.cli import wording
from streams.cli.output import Screen, clean, clock, say, say_bytes, say_json, show, table
from streams.core.model import JournalEntry, JournalKind, NeedsHuman, Notice, Report
from streams.replay.difference import Difference, Kind
from streams.wire import Format, Wire

STYLES = {Kind.GAINED: "green", Kind.LOST: "red", Kind.CHANGED: "yellow", Kind.EARLIER: "cyan", Kind.LATER: "magenta"}


class Shown:
    """Shows notices, and counts everything else."""

    def __init__(self, wire: Wire, *, as_json: bool) -> None:
        self._wire = wire
        self._as_json = as_json
        self._screen = Screen()
        self._notices: Counter[str] = Counter()
        self._told: set[str] = set()
        self._sessions: set[str] = set()
        self._counts: Counter[str] = Counter()

    def take(self, outputs: Sequence[Output]) -> None:
        """Show and count outputs."""
        for output in outputs:
            match output:
                case Notice():
                    self._notices[output.severity] += 1
                    self._told.add(output.session_id)
                    self._show(output)
                case Report():
                    self._counts["turns decided"] += 1
                    self._sessions.add(output.session_id)
                case NeedsHuman():
                    self._counts["calls for a human"] += 1
                case JournalEntry(kind=JournalKind.SUPPRESSED):
                    self._counts["notices held back by the breaker"] += 1
                case JournalEntry():
                    self._counts["other journal entries"] += 1

    def end(self) -> None:
        """Show the counts."""
        if self._as_json:
            return
        by_severity = ", ".join(f"{name} {count}" for name, count in self._notices.most_common())
        made = table("", "")
        made.show_header = False
        made.add_row("notices", f"{self._notices.total()}" + (f" ({by_severity})" if by_severity else ""))
        made.add_row("sessions with a notice", f"{len(self._told)}" + self._of_sessions())
        for name, count in self._counts.items():
            made.add_row(name, str(count))
        show(made)

    def _of_sessions(self) -> str:
        return f" of {len(self._sessions)}" if self._sessions else ""

    def _show(self, notice: Notice) -> None:
        if self._as_json:
            say_bytes(self._wire.write(notice, Format.JSON))
        else:
            self._screen.print(wording.notice(notice))


def show_differences(found: list[Difference], same: int, *, as_json: bool) -> None:
    """Show how the notices of two replays differ."""
    if as_json:
        for item in found:
            say_json({"difference": item.kind, "before": item.before, "after": item.after})
        return
    if found:
        made = table("", "session", "when", "signatures", "what is said")
        for item in found:
            made.add_row(
                Text(item.kind, STYLES[item.kind]),
                clean(item.notice.session_id, limit=60),
                _when(item),
                clean(_signatures(item)),
                clean(item.notice.summary, limit=200),
            )
        show(made)
    counts = Counter(item.kind for item in found)
    say(", ".join(f"{counts[kind]} {kind}" for kind in Kind), f", {same} the same")


def _when(item: Difference) -> str:
    shown = clock(item.notice.time)
    return f"{shown} ({item.shift_ms / 1000:+.3g} s)" if item.shift_ms else shown


def _signatures(item: Difference) -> str:
    now = ", ".join(item.notice.signatures)
    if item.kind is not Kind.CHANGED or item.before is None:
        return now
    before = ", ".join(item.before.signatures)
    return f"{before} -> {now}" if before != now else f"{now}: {item.before.severity} -> {item.notice.severity}"
