"""Looks at a worker every few seconds: shows where it stands, says what stands still, and ends what stays so."""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog
from aiokafka.errors import KafkaError
from faust.types import TP

from streams.engine import Read, Stage, Standing
from streams.health.status import PartitionStatus, Place, WorkerStatus
from streams.health.watch import Findings, Progress, Seen, Watch
from streams.metrics import Metrics

log = structlog.get_logger(__name__)

ASK_S: Final = 15.0
"""How long the broker may take to say where partitions end."""
LOOP: Final = "loop"
RECOVERY: Final = "recovery"


class Ends(Protocol):
    """Whoever knows where partitions end: the engine's Offsets."""

    async def end_offsets(self, tps: Collection[TP]) -> Mapping[TP, int]: ...


class Pulse(Protocol):
    """The worker's event loop, asked from outside; see `asked` and `answered` as two positions."""

    asked: int
    answered: int
    standing: Standing

    def ask(self) -> None: ...


class Monitor:
    """What is watched: the event loop, and each partition of the worker, first while it recovers, then while it is read.

    end_process: called when something is overdue.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        pulse: Pulse,
        ends: Ends,
        metrics: Metrics,
        limits: tuple[float, float],
        end_process: Callable[[], None],
    ) -> None:
        self._stages = {topic: stage for stage in stages for topic in stage.topics}
        self._pulse = pulse
        self._ends = ends
        self._metrics = metrics
        self._end_process = end_process
        self._exit_s = limits[1]
        self._loop = Watch[str](*limits)
        self._partitions = Watch[Place](*limits)
        self._recoveries = Watch[Place](*limits)
        self._broker_away = False
        self._now = 0.0

    async def look(self, now: float) -> None:
        """Look once; *now* is a clock that only goes forward, in seconds."""
        self._now = now
        pulse = self._pulse
        loop = self._loop.look(now, {LOOP: Seen(pulse.answered, pulse.asked)})
        standing = pulse.standing
        pulse.ask()
        read = {self._place(tp): read for tp, read in standing.read.items() if tp.topic in self._stages}
        recovering = {self._place(tp): self._restoring(tp, standing) for tp in self._recovering(standing)}
        ends = await self._ask_broker([*(place.tp for place in read), *map(self._restored_from, recovering)])
        if ends is None:
            # Nothing can be applied: that is no stall of ours.
            self._partitions.excuse(now)
            self._recoveries.excuse(now)
            partitions = recoveries = Findings[Place]()
        else:
            seen = {place: self._seen(place, found, ends) for place, found in read.items()}
            partitions = self._partitions.look(now, seen, recovering)
            recoveries = self._recoveries.look(now, recovering)
        self._say(loop, partitions, recoveries)
        self._show()
        if loop.overdue or partitions.overdue or recoveries.overdue:
            names = [*loop.overdue, *(place.name for place in (*partitions.overdue, *recoveries.overdue))]
            log.error("ending", stalled=names, hint="the next worker reads on from what is stored")
            self._end_process()

    async def _ask_broker(self, tps: Collection[TP]) -> Mapping[TP, int] | None:
        if not tps:
            # Nothing to ask: what was known of the broker stands.
            return None if self._broker_away else {}
        try:
            async with asyncio.timeout(ASK_S):
                ends = await self._ends.end_offsets(tps)
        except (KafkaError, OSError, TimeoutError) as error:
            if not self._broker_away:
                log.warning("broker_away", error=repr(error), hint="lag is unknown until it answers")
            self._broker_away = True
            return None
        if self._broker_away:
            log.info("broker_back")
        self._broker_away = False
        return ends

    def _place(self, tp: TP) -> Place:
        return Place(self._stages[tp.topic].name, tp.topic, tp.partition)

    def _seen(self, place: Place, read: Read, ends: Mapping[TP, int]) -> Seen:
        turns = place.stage if self._stages[place.topic].reading.by_time else None
        return Seen(read.position, ends[place.tp], read.is_out, turns)

    def _restoring(self, tp: TP, standing: Standing) -> Seen:
        """A recovery is always behind, until its partition is read; some of them wait for the others."""
        applied = standing.restored.get(tp, -1)
        return Seen(applied, applied + 1, tp in standing.restored, RECOVERY)

    def _restored_from(self, place: Place) -> TP:
        table = self._stages[place.topic].table
        return place.tp if table is None else table.changelog_tp(place.partition)

    def _recovering(self, standing: Standing) -> list[TP]:
        return sorted(tp for tp in standing.assigned - standing.read.keys() if tp.topic in self._stages)

    def _say(self, loop: Findings[str], partitions: Findings[Place], recoveries: Findings[Place]) -> None:
        if loop.stalled:
            log.error("loop_blocked", seconds=self._waited(self._loop.known[LOOP]), at=_main_thread())
        if loop.moving:
            log.info("loop_turns_again")
        for place in partitions.stalled:
            known = self._partitions.known[place]
            log.error(
                "stalled",
                stage=place.stage,
                partition=place.name,
                position=known.seen.position,
                lag=known.seen.lag,
                seconds=self._waited(known),
                hint="records wait and none is dealt with; this worker ends if that lasts" * (self._exit_s > 0),
            )
        for place in recoveries.stalled:
            log.error(
                "recovery_stalled",
                stage=place.stage,
                partition=place.name,
                seconds=self._waited(self._recoveries.known[place]),
                hint="nothing more of its state is read; this worker ends if that lasts" * (self._exit_s > 0),
            )
        for place in (*partitions.moving, *recoveries.moving):
            log.info("moves_again", stage=place.stage, partition=place.name)

    def _show(self) -> None:
        """Bring the gauges up to date; scrapes are answered in this loop, so they never see half of it."""
        shown, standing = self._metrics.partitions, self._pulse.standing
        for metric, tps in ((shown.assigned, standing.assigned), (shown.owned, standing.read)):
            stages = [self._stages[tp.topic].name for tp in tps if tp.topic in self._stages]
            for stage in self._stages.values():
                metric.labels(stage.name).set(stages.count(stage.name))
        for gauge in (shown.position, shown.lag, shown.progress, shown.stalled):
            gauge.clear()
        for place, known in self._partitions.known.items():
            shown.position.labels(*place).set(known.seen.position)
            shown.lag.labels(*place).set(known.seen.lag)
            shown.progress.labels(*place).set(self._wall(known.progressed))
        for place in [*self._partitions.known, *self._recoveries.known]:
            shown.stalled.labels(*place).set(place in self._stalled)
        self._metrics.worker.broker_away.set(self._broker_away)
        self._metrics.worker.loop_blocked.set(self._blocked_s)

    def status(self) -> WorkerStatus:
        """Return what the last look found."""
        standing = self._pulse.standing
        loop = self._loop.known.get(LOOP)
        live = loop is not None and not loop.is_stalled
        known = self._partitions.known
        recovering = tuple(self._place(tp).name for tp in self._recovering(standing))
        stalled = tuple(place.name for place in sorted(self._stalled))
        return WorkerStatus(
            live=live,
            ready=live and standing.settled and not (self._broker_away or recovering or stalled),
            loop_blocked_s=self._blocked_s,
            broker_away=self._broker_away,
            recovering=recovering,
            stalled=stalled,
            partitions=tuple(self._partition(place, item) for place, item in sorted(known.items())),
        )

    def _partition(self, place: Place, known: Progress) -> PartitionStatus:
        seen = known.seen
        progressed = datetime.fromtimestamp(self._wall(known.progressed), UTC).isoformat(timespec="milliseconds")
        return PartitionStatus(
            *place, seen.position, seen.end, seen.lag, progressed, self._waited(known), known.is_stalled
        )

    @property
    def _stalled(self) -> set[Place]:
        watches = (self._partitions, self._recoveries)
        return {place for watch in watches for place, known in watch.known.items() if known.is_stalled}

    @property
    def _blocked_s(self) -> float:
        loop = self._loop.known.get(LOOP)
        return self._waited(loop) if loop else 0.0

    def _waited(self, known: Progress) -> float:
        return round(self._now - known.waits_since, 3)

    def _wall(self, moment: float) -> float:
        """Return a moment of our clock as seconds since 1970."""
        return time.time() - (time.monotonic() - moment)


def _main_thread() -> str:
    """Say where the main thread is: what blocks the loop."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001  (documented; a debugger's way)
    return "".join(traceback.format_stack(frame, limit=6)) if frame else ""
