"""What the demo shows: each notice with the series behind it, and the closing tables."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from rich.table import Table
from rich.text import Text

from streams.cli import wording
from streams.cli.output import clean, say, show, table
from streams.core.model import NeedsHuman, Notice, Outcome, Severity, TurnSettled
from streams.recording import Line, Recording
from streams.settings import Settings

METRIC: Final = "task_completion"
SPARK_WIDTH: Final = 24
STORY: Final = "expert noisy derailed repeater random"


class Story:
    """Keeps what was published and what came back."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._series: dict[str, dict[str, float]] = defaultdict(dict)
        self._projects: dict[str, str] = {}
        self._failed: dict[str, bool] = {}
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._noticed: dict[str, Counter[str]] = defaultdict(Counter)
        self._signatures: Counter[str] = Counter()
        self._waiting: set[str] = set()
        self._outcomes: Counter[str] = Counter()

    @property
    def unsettled(self) -> bool:
        """Whether a published trace has no diagnosis yet."""
        return bool(self._waiting)

    def adds(self, recorded: Recording) -> None:
        self._projects |= recorded.projects
        self._failed |= recorded.failed

    def published(self, lines: Iterable[Line]) -> None:
        for line in lines:
            fields, project = line.fields, self._projects[line.session_id]
            self._counts[project]["scores" if line.is_score else "traces"] += 1
            if not line.is_score:
                self._waiting.add(f"{line.session_id}/{fields['trace_id']}")
            elif fields["name"] == METRIC:
                self._series[line.session_id][fields["trace_id"]] = float(fields["value"])

    def opens(self, recorded: Recording, speed: float) -> None:
        rules = self._settings.rules
        say(
            ("\nReal agents in MiniGrid rooms", "bold"),
            f", {len(recorded.failed)} recorded sessions at {speed:g} x their pace.",
        )
        say(
            f"A notice: {rules.gate_window} traces without a gain of {rules.gate_gain:g} while the peak is under "
            f"{rules.gate_target:g} (stall), or a fall of more than {rules.gate_drop:g} under the peak (regression)."
        )
        say(
            f"Each kind of agent is a project; its circuit breaker lets {rules.circuit_breaker_max_notices} notices "
            f"through within {rules.circuit_breaker_window_s:g} s.\n"
        )

    def changes(self, project: str, limit: int) -> None:
        say(
            ("\nOne more scene", "bold"),
            f": a fleet gone wrong, all in one project, {project}. After {limit} notices its",
        )
        say("circuit breaker trips: a person is asked instead, and its agents are told no more.\n")

    def notice(self, item: Notice) -> None:
        """Show a notice with the session's series up to it; those of the last scene are only counted."""
        self._noticed[item.session_id][item.severity] += 1
        self._signatures.update(item.signatures)
        if item.session_id in self._projects and len(self._counts) > len(STORY.split()):
            return
        style = wording.SEVERITY_STYLES[item.severity]
        line = Text.assemble((f"{item.severity:<7}", style), " ", clean(f"{item.session_id:<13}", "bold"), " ")
        line.append_text(self._spark(item)).append("  ")
        found = ", ".join(signature.replace(f":{METRIC}", "") for signature in item.signatures)
        say(line.append_text(clean(found, style)))

    def needs_human(self, item: NeedsHuman) -> None:
        say(wording.needs_human(item))

    def settled(self, item: TurnSettled) -> None:
        self._waiting.discard(item.turn_id)
        self._outcomes[f"{item.project} {item.outcome}"] += 1

    def tell(self) -> None:
        """Print the closing tables."""
        show(self._by_project())
        show(self._by_outcome())
        show(self._by_signature())

    def _spark(self, item: Notice) -> Text:
        """Return the session's progress up to the notice: gains green, the trace it speaks of in its colour."""
        at = next((score.trace_id for score in item.scores if score.metric == METRIC), None)
        values: list[float] = []
        for trace_id, value in self._series[item.session_id].items():
            values.append(value)
            if trace_id == at:
                break
        line, peak = Text(), -1.0
        gain = self._settings.gate_gain
        for value in values:
            gained = peak < 0 or value >= peak + gain
            peak = max(peak, value) if gained else peak
            line.append(wording.sparkline([value]), "green" if gained else "dim")
        line.stylize(wording.SEVERITY_STYLES[item.severity], len(line) - 1)
        line = line[-SPARK_WIDTH:] if len(line) > SPARK_WIDTH else line
        line.append(" " * (SPARK_WIDTH - len(line)))
        return line.append(f"  now {values[-1]:4.2f}  peak {peak:4.2f}")

    def _by_project(self) -> Table:
        made = table(
            "project", "sessions", "traces", "scores", "notices", *Severity, "held back", title="\nWhat happened"
        )
        for project, counts in self._counts.items():
            sessions = [session for session, owner in self._projects.items() if owner == project]
            told: Counter[str] = sum((self._noticed[session] for session in sessions), Counter())
            held = (
                self._outcomes[f"{project} {Outcome.SUPPRESSED}"] + self._outcomes[f"{project} {Outcome.NEEDS_HUMAN}"]
            )
            cells = (
                len(sessions),
                counts["traces"],
                counts["scores"],
                told.total(),
                *(told[each] for each in Severity),
                held,
            )
            made.add_row(project, *map(str, cells))
        return made

    def _by_outcome(self) -> Table:
        made = table(
            "sessions that", "failed in truth", "succeeded in truth", "share failed", title="\nWere they right?"
        )
        sessions = [session for session in self._failed if self._projects[session] in STORY.split()]
        for words, raised in (("raised a notice", True), ("raised none", False)):
            labels = [self._failed[session] for session in sessions if bool(self._noticed[session]) is raised]
            share = f"{sum(labels) / len(labels):.0%}" if labels else "-"
            made.add_row(words, str(sum(labels)), str(len(labels) - sum(labels)), share)
        return made

    def _by_signature(self) -> Table:
        made = table("signature", "notices that name it", title="\nWhat was found")
        for signature, count in self._signatures.most_common():
            made.add_row(clean(signature), str(count))
        return made
