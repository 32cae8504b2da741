"""Eval runs and monitors as people handle them: asked for, looked up, and told what to do."""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from streams import reading
from streams.agents.outbox import EvalOutput, Outbox
from streams.core.eval_log import EvalEvent
from streams.core.model import ScoreTarget
from streams.core.monitors import Monitor, MonitorPut, MonitorTriggered, triggered_run_id
from streams.core.run_plan import planned, target_count
from streams.core.run_targets import TraceFacts
from streams.core.runs import FINISHED, EvalRun, RunCreated
from streams.engine import Publisher, abilities
from streams.errors import BadRun, TgateError
from streams.evaluators.survey import ends_of, failed_among, scores_of, traces_before
from streams.evaluators.wishes import TRACE_METRICS, checked
from streams.reading import Place
from streams.settings import Settings
from streams.topics import EVAL_LOG, EVAL_RUNS, EVAL_SCORES, MONITORS, TRACES, named
from streams.wire import Wire
from streams.wire.inputs import Datum

Kept = TypeVar("Kept", EvalRun, Monitor)

SHOWN_PROJECTS: Final = 5
ROOM_FOR_KEY: Final = 10_000


def new_id() -> str:
    """Return an id for a run or a monitor that someone asks for."""
    return secrets.token_hex(16)


def now() -> int:
    """Return the time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


class Ledger:
    """Reads `eval-runs` and `monitors`, and appends to the eval log; each call on connections of its own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._wire = Wire.of(settings)

    async def runs(self) -> list[EvalRun]:
        """Return every run that is kept, oldest first."""
        (place,) = await reading.locate(self._settings, EVAL_RUNS)
        return sorted(await self._kept(place, EvalRun), key=lambda run: (run.created_at, run.run_id))

    async def monitors(self) -> list[Monitor]:
        """Return every monitor, oldest first."""
        (place,) = await reading.locate(self._settings, MONITORS)
        return sorted(await self._kept(place, Monitor), key=lambda monitor: (monitor.created_at, monitor.monitor_id))

    async def run(self, name: str) -> EvalRun:
        """Return the run with this id, or whose id begins so.

        Raises:
            TgateError: there is none, or more than one.
        """
        found = [run for run in await self.runs() if run.run_id.startswith(name)]
        return _one(found, lambda run: run.run_id, f"run {name!r}", "`tgate runs list` shows the runs that are kept")

    async def monitor(self, name: str) -> Monitor:
        """Return the monitor with this id, whose id begins so, or that is called so.

        Raises:
            TgateError: there is none, or more than one.
        """
        held = await self.monitors()
        found = [monitor for monitor in held if name in (monitor.monitor_id, monitor.name)]
        found = found or [monitor for monitor in held if monitor.monitor_id.startswith(name)]
        return _one(found, lambda it: it.monitor_id, f"monitor {name!r}", "`tgate monitors list` shows all")

    async def create(self, run: EvalRun) -> int:
        """Ask for a run, and return how many targets it will have, as far as can be said now.

        Raises:
            BadRun: it cannot be, or nothing matches; nothing has been created.
        """
        run = checked(run)
        (place,) = await reading.locate(self._settings, TRACES)
        ends = await ends_of(place)
        traces = await traces_before(place, self._wire, ends)
        # By its filters alone: a sampling rate of 0 asks for an empty run, not for nothing that matches.
        if not planned(replace(run, sampling_rate=1.0), traces, TRACE_METRICS):
            raise BadRun(_nothing_matches(run, traces))
        await self._append(run, RunCreated(run, ends))
        return target_count(run, planned(run, traces, TRACE_METRICS))

    async def retry(self, run: EvalRun) -> tuple[EvalRun, int]:
        """Ask again for the scores of a run that have no value; returns the new run, and how many those are.

        Raises:
            BadRun: the run goes on, or none of its scores has failed; nothing has been created.
        """
        if run.status not in FINISHED:
            raise BadRun(f"run {run.run_id} is {run.status}: what fails is not known before it has ended")
        failed = failed_among(await self.scores(run))
        if not failed:
            raise BadRun(_nothing_failed(run))
        metrics = tuple(metric for metric in run.metrics if any(score.metric == metric for score in failed))
        again = EvalRun(
            run_id=new_id(),
            project=run.project,
            name=run.name,
            target=run.target,
            metrics=metrics,
            created_at=now(),
            model=run.model,
            signal_weights=run.signal_weights,
            thresholds=run.thresholds,
            retry_of=run.run_id,
        )
        await self._append(again, RunCreated(again, ()))
        return again, len(failed)

    async def scores(self, run: EvalRun) -> tuple[Datum, ...]:
        """Return the scores of a run that are kept, fields as the JSON format has them."""
        (place,) = await reading.locate(self._settings, EVAL_SCORES)
        return await scores_of(place, self._wire, run.run_id, run.created_at)

    async def put(self, monitor: Monitor, *, is_new: bool = False) -> None:
        """Ask for a monitor, or for other wishes of one.

        Raises:
            BadRun: it cannot be; nothing has been created.
        """
        monitor = checked(monitor)
        await self._append(*([monitor] if is_new else []), MonitorPut(monitor))

    async def trigger(self, monitor: Monitor) -> str:
        """Ask for a run of a monitor now; returns the run's id."""
        (place,) = await reading.locate(self._settings, TRACES)
        at = now()
        await self._append(MonitorTriggered(monitor.monitor_id, at, await ends_of(place)))
        return triggered_run_id(monitor.monitor_id, at)

    async def tell(self, event: EvalEvent) -> None:
        """Append an event."""
        await self._append(event)

    async def _append(self, *outputs: EvalOutput) -> None:
        """Append one after the other: what is shown first is there before evaluators can change it."""
        places = await reading.locate(self._settings, EVAL_LOG, EVAL_RUNS, MONITORS)
        counts = {
            role: len(place.partitions) for role, place in zip((EVAL_LOG, EVAL_RUNS, MONITORS), places, strict=True)
        }
        outbox = Outbox(self._wire, named(self._settings.topic_names), counts)
        reach = places[0].connection
        limit = self._settings.max_record_bytes + ROOM_FOR_KEY
        publisher = Publisher(reach, idempotent=(await abilities(reach)).fences, max_record=limit)
        try:
            for output in outputs:
                await publisher.publish([outbox.record(output)])
        finally:
            await publisher.stop()

    async def _kept(self, place: Place, made: type[Kept]) -> list[Kept]:
        found = await reading.latest(place, lambda _: True)
        return [self._wire.read(made, value) for value in found.values()]


def _one(found: Sequence[Kept], id_of: Callable[[Kept], str], what: str, hint: str) -> Kept:
    if not found:
        raise TgateError(f"there is no {what}; {hint}")
    if len(found) > 1:
        raise TgateError(f"{what} may be {', '.join(id_of(item) for item in found[:3])}: say more of its id")
    return found[0]


def _nothing_matches(run: EvalRun, traces: Sequence[TraceFacts]) -> str:
    what = "trace" if run.target is ScoreTarget.TRACE else "session"
    counts = Counter(trace.project for trace in traces)
    said = ", ".join(f"{project} ({count})" for project, count in counts.most_common(SHOWN_PROJECTS))
    if not said:
        return "nothing was created: the topic of traces is empty; publish some, or see whether a worker runs"
    return f"nothing was created: no {what} of project {run.project} matches; there are traces of {said}"


def _nothing_failed(run: EvalRun) -> str:
    if run.failed_count:
        return f"the {run.failed_count} failed scores of run {run.run_id} are not kept any more: create it anew"
    if run.error_message is not None:
        return f"run {run.run_id} broke before any of its scores failed: create it anew ({run.error_message})"
    return f"no score of run {run.run_id} has failed: there is nothing to retry"
