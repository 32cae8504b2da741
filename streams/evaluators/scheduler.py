"""Says when monitors are due: the clock of whoever owns their eval-log partition."""

import asyncio
import time
from typing import Final

import structlog

from streams.core.monitors import MonitorDue, MonitorState
from streams.engine import Offsets
from streams.evaluators.cadence import next_time
from streams.evaluators.planner import AWAY, OwnerDesk
from streams.evaluators.survey import ends_of, was_ingested

log = structlog.get_logger(__name__)

SAY_AGAIN_MS: Final = 30_000
"""After this long without effect an event is appended again: the fold takes one of them."""


class Scheduler:
    """Appends what is due. Of several schedulers at once, one counts: the fold reschedules at the first event."""

    def __init__(self, desk: OwnerDesk, offsets: Offsets) -> None:
        self._desk = desk
        self._offsets = offsets
        self._said: dict[tuple[str, int], int] = {}

    async def run(self) -> None:
        """Beat until cancelled; a broker that is away is waited for."""
        while True:
            try:
                await self.beat(time.time_ns() // 1_000_000)
            except AWAY as error:
                log.warning("no_schedule", error=repr(error), hint="the broker does not answer; trying again")
            await asyncio.sleep(self._desk.settings.tick_interval_s)

    async def beat(self, now: int) -> None:
        """Append the monitors that are due at *now*, in milliseconds of this worker's clock."""
        due = {
            (monitor_id, state.monitor.next_run_at): state
            for fold in list(self._desk.folds.values())
            for monitor_id in fold.due(now)
            if (state := fold.monitor(monitor_id)) is not None and state.monitor.next_run_at is not None
        }
        self._said = {key: at for key, at in self._said.items() if key in due and now - at < SAY_AGAIN_MS}
        wanted = [state for key, state in due.items() if key not in self._said]
        if not wanted:
            return
        ends = await ends_of(self._desk.traces, self._offsets)
        for state in wanted:
            event = await self._due(state, ends, now)
            await self._desk.publisher.publish([self._desk.outbox.record(event)])
            self._said[event.monitor_id, event.due_at] = now
            log.info("monitor_due", monitor=event.monitor_id, due_at=event.due_at, next_at=event.next_at)

    async def _due(self, state: MonitorState, ends: tuple[int, ...], now: int) -> MonitorDue:
        monitor = state.monitor
        assert monitor.next_run_at is not None
        desk, asks = self._desk, monitor.only_if_changed and bool(state.ends)
        changed = not asks or await was_ingested(desk.traces, desk.wire, monitor.project, state.ends, ends)
        return MonitorDue(
            monitor_id=monitor.monitor_id,
            due_at=monitor.next_run_at,
            at=now,
            next_at=next_time(monitor.cadence, now),
            ends=ends,
            changed=changed,
        )
