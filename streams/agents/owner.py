"""What the owner of a session-log partition appends to it: the rules once, and ticks while a wait is due."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from aiokafka.errors import KafkaError
from faust.types import TP

from streams.agents.outbox import Outbox
from streams.core.ids import digest
from streams.core.log import LogFold, LogRecord
from streams.core.model import JournalEntry, JournalKind
from streams.core.rules import Rules, seconds
from streams.core.session import Tick
from streams.engine import Appended, EngineError, Offsets, Publisher
from streams.metrics import Metrics
from streams.settings import Settings
from streams.topics import SESSION_LOG
from streams.wire import Wire

log = structlog.get_logger(__name__)

DAY_MS = 86_400_000
SKEW_LOOK_MS = 60_000


@dataclass(frozen=True)
class Pledge:
    """A tick in the making: it may be appended once everything up to `ends` has been applied."""

    as_of: int
    ends: Mapping[TP, int]
    log_end: int


@dataclass
class Progress:
    """How far ingest has come with one input partition, since when it has not moved, and whether it had a backlog."""

    committed: int
    since: int
    is_behind: bool


class Owner:
    """Appends rules and ticks to the partitions whose folds this worker holds."""

    def __init__(
        self,
        settings: Settings,
        folds: Mapping[int, LogFold],
        inputs: Sequence[str],
        publisher: Publisher,
        outbox: Outbox,
        wire: Wire,
        offsets: Offsets,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._rules: Rules = settings.rules
        self._folds = folds
        self._inputs = inputs
        self._publisher = publisher
        self._outbox = outbox
        self._wire = wire
        self._offsets = offsets
        self._metrics = metrics
        self._log_topic = settings.topic_names.get(SESSION_LOG, SESSION_LOG)
        self._rules_appended: dict[int, int] = {}
        self._pledges: dict[int, Pledge] = {}
        self._progress: dict[TP, Progress] = {}
        self._skewed = False

    async def run(self) -> None:
        """Beat until cancelled; a broker that is away is waited for."""
        while True:
            try:
                await self.beat(_clock())
            except (KafkaError, EngineError, TimeoutError) as error:
                log.warning("no_tick", error=repr(error), hint="the broker does not answer; trying again")
            await asyncio.sleep(self._settings.tick_interval_s)

    async def beat(self, now: int) -> None:
        """Do what is due at *now*, in milliseconds of this worker's clock."""
        owned = dict(self._folds)
        self._rules_appended = {part: at for part, at in self._rules_appended.items() if part in owned}
        for partition in owned:
            if now - self._rules_appended.get(partition, -DAY_MS) >= DAY_MS:
                await self._append(partition, self._rules, now)
                self._rules_appended[partition] = now
        due = {part: fold for part, fold in owned.items() if fold.next_due is not None and fold.next_due <= now}
        self._pledges = {
            part: held for part, held in self._pledges.items() if part in due and self._useful(held, due[part])
        }
        if self._skewed:
            await self._look_again(owned, now)
        elif due:
            await self._tick(due, now)

    async def _tick(self, due: Mapping[int, LogFold], now: int) -> None:
        # Asked for each time: topics are given more partitions, and are made again with fewer records.
        inputs = await self._offsets.partitions(self._inputs)
        logs = {part: TP(self._log_topic, part) for part in due.keys() - self._pledges.keys()}
        found = await self._offsets.end_offsets([*inputs, *logs.values()])
        ends = {tp: found[tp] for tp in inputs}
        self._pledges.update({part: Pledge(now, ends, found[log]) for part, log in logs.items()})
        committed = await self._offsets.committed(self._settings.app_id, inputs)
        self._note_progress(committed, now)
        for partition, pledge in list(self._pledges.items()):
            wanted = {tp: min(end, ends[tp]) for tp, end in pledge.ends.items() if tp in ends}
            behind = {tp for tp, end in wanted.items() if (committed[tp] or 0) < end}
            stuck = {tp for tp in behind if now - self._progress[tp].since >= seconds(self._settings.stuck_input_s)}
            if behind <= stuck and due[partition].position >= pledge.log_end:
                names = tuple(sorted(f"{tp.topic}-{tp.partition}" for tp in stuck))
                await self._append(partition, Tick(pledge.as_of, names), now)
                self._metrics.worker.ticks.inc()
                del self._pledges[partition]

    async def _look_again(self, owned: Mapping[int, LogFold], now: int) -> None:
        """While the clock is off, the same rules once a minute: they change nothing, and their ack tells the time."""
        partition = min(owned, default=None)
        if partition is not None and now - self._rules_appended[partition] >= SKEW_LOOK_MS:
            await self._append(partition, self._rules, now)
            self._rules_appended[partition] = now

    def _useful(self, pledge: Pledge, fold: LogFold) -> bool:
        return fold.next_due is not None and fold.next_due <= pledge.as_of

    def _note_progress(self, committed: Mapping[TP, int | None], now: int) -> None:
        """Remember since when each backlog has not moved; where there is none, nothing stands still."""
        wanted: dict[TP, int] = {}
        for pledge in self._pledges.values():
            wanted.update({tp: max(end, wanted.get(tp, 0)) for tp, end in pledge.ends.items()})
        for tp, known_offset in committed.items():
            offset = known_offset or 0
            is_behind = offset < wanted.get(tp, 0)
            known = self._progress.get(tp)
            if known is None or known.committed != offset or not (known.is_behind and is_behind):
                self._progress[tp] = Progress(offset, now, is_behind)

    async def _append(self, partition: int, body: Rules | Tick, now: int) -> None:
        value = self._wire.write_internal(LogRecord(-1, now, body))
        sent = _clock()
        for ack in await self._publisher.publish([self._outbox.to(SESSION_LOG, None, value, partition=partition)]):
            await self._check_clock(ack, sent)

    async def _check_clock(self, ack: Appended, sent: int) -> None:
        """Compare this worker's clock with the broker's; while they differ too much, this worker says no time."""
        if ack.timestamp_ms is None:
            return
        now = _clock()
        # Only what lies outside of sending and ack is skew: an ack may take long, a worker may be stopped meanwhile.
        skew = (max(0, sent - ack.timestamp_ms) - max(0, ack.timestamp_ms - now)) / 1000
        self._metrics.worker.clock_skew.set(skew)
        skewed = abs(skew) > self._settings.max_clock_skew_s
        if skewed and not self._skewed:
            log.error("clock_skew", seconds=skew, hint="set this machine's clock; until then it appends no ticks")
            entry = JournalEntry(
                journal_id=digest("clock_skew", self._settings.app_id, now),
                kind=JournalKind.HEALTH,
                reason="clock_skew",
                session_id=None,
                project=None,
                turn_id=None,
                trace_id=None,
                metric=None,
                detail=f"this worker's clock is {skew:.1f} s off the broker's",
                time=now,
            )
            await self._publisher.publish([self._outbox.record(entry)])
            self._metrics.outputs.journal.labels(entry.kind).inc()
        self._skewed = skewed


def _clock() -> int:
    return time.time_ns() // 1_000_000
