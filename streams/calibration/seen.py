"""What a replay's reports say of every session: its series of values in the order in which they were folded."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from streams.agents.outbox import Output
from streams.calibration.tracks import Tracks, tracks
from streams.core.model import Lane, Report, Score, ScoreSource

Row = dict[str, float]
"""Tier-1 metric -> value, of one trace."""


@dataclass
class Seen:
    """Collects reports; with them, the tier-1 series by trace, and every value of every metric."""

    projects: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    """Session -> its task, of those that have one."""
    _scores: dict[str, dict[str, dict[str, float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    """Metric -> session -> trace, or score of a session -> value."""
    _rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    _ends: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    _tier1: dict[str, None] = field(default_factory=dict)
    _series: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """Metric -> session -> values in the order in which the session lane folded them, or the gate did."""

    def take(self, outputs: Iterable[Output]) -> None:
        """Take the reports among some outputs."""
        for output in outputs:
            if isinstance(output, Report):
                self._take(output)

    def watch(self, session_id: str, score: Score) -> None:
        """Take a score as it came: also one that its turn did not wait for. The first one of a trace stands, or a person's."""
        if score.value is None:
            return
        held = self._scores[score.name][session_id]
        key = score.trace_id or score.score_id
        if key not in held or score.source is ScoreSource.ANNOTATION:
            held[key] = score.value

    @property
    def values(self) -> dict[str, dict[str, list[float]]]:
        """Metric -> session -> values in the order in which they came; only sessions of which something was decided."""
        known = self.projects
        found = {
            metric: {name: list(values.values()) for name, values in held.items() if name in known}
            for metric, held in self._scores.items()
        }
        return {metric: held for metric, held in found.items() if held}

    def _take(self, report: Report) -> None:
        self.projects[report.session_id] = report.project
        if report.task is not None:
            self.tasks[report.session_id] = report.task
        if report.lane is Lane.SESSION:
            for score in report.scores:
                if score.value is not None:
                    self._series[score.metric][report.session_id].append(score.value)
            return
        held: dict[str, dict[str, float]] = {}
        for score in report.scores:
            if score.tier == 1 and score.value is not None and score.trace_id is not None:
                held.setdefault(score.trace_id, {})[score.metric] = score.value
                self._tier1.setdefault(score.metric, None)
        rows = [held[trace_id] for trace_id in report.trace_ids if trace_id in held]
        if rows:
            self._rows[report.session_id] += rows
            self._ends[report.session_id] += [False] * (len(rows) - 1) + [True]

    @property
    def session_metrics(self) -> tuple[str, ...]:
        """Metrics met in the session lane."""
        return tuple(sorted(self._series))

    def gate_tracks(self) -> Tracks:
        """Return the tier-1 series of all sessions that have any, by trace."""
        names = sorted(self._rows)
        metrics = tuple(self._tier1)
        return tracks(
            metrics,
            (
                (name, [[row.get(metric) for metric in metrics] for row in self._rows[name]], self._ends[name])
                for name in names
            ),
        )

    def metric_tracks(self, metric: str) -> Tracks:
        """Return the series of one metric as its detectors folded it, each value a step of its own."""
        held = self._series.get(metric) or {
            name: [row[metric] for row in rows if metric in row] for name, rows in self._rows.items()
        }
        return tracks((metric,), ((name, [[value] for value in held[name]], None) for name in sorted(held)))
