"""The agent's side of the gate: publish traces and scores, follow notices, wait for a diagnosis."""

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Literal, Self

from streams.broker.address import announced
from streams.client.landings import Landings
from streams.client.reach import Reach
from streams.client.recorder import TraceRecorder, now
from streams.client.records import Encoded, Fields, Redact, Withheld, encode, score_fields
from streams.client.sender import Counts, Sender, WhenFull
from streams.client.settlement import Settlement, SettleState
from streams.client.subscription import Since, Start, Subscription
from streams.client.turns import Turn, Turns
from streams.core.model import DEFAULT_PROJECT, NeedsHuman, Notice, ScoreSource, TraceStatus
from streams.errors import InvalidRecord
from streams.reading import HUMAN, NOTICE
from streams.settings import Settings, load
from streams.wire import Wire

logger = logging.getLogger(__name__)

FLUSH_S: Final = 10.0
DRAIN_S: Final = 15.0
LOOK_S: Final = 5.0


class Gate:
    """Used as `async with Gate() as gate`. Nothing here raises into the agent's loop, or waits for a broker, unasked.

    settings: as `streams.settings.load` returns them; without, they are read as every command reads them, and a broker
        that `tgate up` runs in this directory is found. Single ones may be given by name: `bootstrap_servers="..."`.
    project: of traces that name none.
    redact: what may leave the process; see Redaction. A record whose redaction raises is not sent.
    when_full: what becomes of a record that finds `queue_records` or `queue_bytes` waiting.
    flush_s: how long leaving the block waits for what is still to be sent.
    strict: raise InvalidRecord for a record that is not valid, instead of counting and logging it.

    Raises:
        BadSettings: a setting is wrong; before anything is started.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        project: str = DEFAULT_PROJECT,
        redact: Redact | None = None,
        when_full: WhenFull | Literal["drop", "wait"] = WhenFull.DROP,
        queue_records: int = 10_000,
        queue_bytes: int = 64 * 1024 * 1024,
        flush_s: float = FLUSH_S,
        strict: bool = False,
        **overrides: Any,
    ) -> None:
        self.settings = settings or _settings(overrides)
        self.project = project
        self._redact, self._flush_s, self._strict = redact, flush_s, strict
        self._wire = Wire.of(self.settings)
        self._reach = Reach(self.settings)
        self._sender = Sender(
            self._reach,
            when_full=WhenFull(when_full),
            max_records=queue_records,
            max_bytes=queue_bytes,
        )
        self._turns = Turns(self.settings.evaluated_statuses)
        self._landings = Landings(self._reach, self._wire, self._turns.landed)
        self._subscriptions: set[Subscription[Any]] = set()
        self._refused = self._withheld = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._sender.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what is still waiting, for as long as `flush_s`, and end every subscription."""
        try:
            await self._sender.close(self._flush_s)
        finally:
            for subscription in list(self._subscriptions):
                await subscription.aclose()
            await self._landings.close()

    @property
    def counts(self) -> Counts:
        """What became of everything that was published."""
        sent, waiting, dropped, lost = self._sender.counts()
        return Counts(sent, waiting, dropped, self._refused, self._withheld, lost, self._sender.trouble)

    def trace(self, session: str, name: str = "turn", **fields: Any) -> TraceRecorder:
        """Return a trace to be entered, with `async with` or `with`; it is published when the block ends.

        fields: any of TraceRecorder's, such as input, metadata, turn_index, ends_turn.
        """
        fields.setdefault("project", self.project)
        return TraceRecorder(
            offer=self._offer_trace, submit=self._submit_trace, session_id=session, name=name, **fields
        )

    async def submit_score(
        self, session: str, metric: str, value: float | bool | str | None, trace: str | None = None, **fields: Any
    ) -> bool:
        """Publish a score; returns whether it was taken.

        value: a number in [0, 1], a boolean, or a text that is carried and never judged; none says that scoring failed.
        trace: the trace it judges; none for the session.
        fields: source (AUTOMATED, ANNOTATION for a person's word, PROGRAMMATIC), reason, threshold, flagged_traces,
            metadata, eval_run_id, score_id, created_at.
        """
        return await self._submit("Score", score_fields(session, metric, value, trace, fields))

    def offer_score(
        self, session: str, metric: str, value: float | bool | str | None, trace: str | None = None, **fields: Any
    ) -> bool:
        """Publish a score without ever waiting, from any thread; see submit_score."""
        return self._offer("Score", score_fields(session, metric, value, trace, fields))

    async def submit_trace(self, fields: Mapping[str, Any]) -> bool:
        """Publish a trace that was recorded elsewhere, fields as in the schema; returns whether it was taken."""
        return await self._submit("Trace", {"project": self.project, **fields})

    def offer_trace(self, fields: Mapping[str, Any]) -> bool:
        """Publish such a trace without ever waiting, from any thread."""
        return self._offer("Trace", {"project": self.project, **fields})

    async def flush(self, timeout: float = FLUSH_S) -> bool:  # noqa: ASYNC109  (the caller's choice, not a deadline of ours)
        """Wait until the broker has acknowledged all that was published; returns whether it was in time."""
        return await self._sender.flush(timeout)

    def notices(self, session: str | None = None, since: Start = Since.LATEST) -> Subscription[Notice]:
        """Follow notices, of one session or of all; each once, from where *since* says.

        Raises:
            ValueError: *since* is no place to begin.
        """

        def wanted(notice: Notice) -> bool:
            return session is None or notice.session_id == session

        return self._subscribed(Subscription(self._reach, self._wire, NOTICE, session, since, wanted))

    def needs_human(self, project: str | None = None, since: Start = Since.LATEST) -> Subscription[NeedsHuman]:
        """Follow the calls for a person, of one project or of all."""

        def wanted(call: NeedsHuman) -> bool:
            return project is None or call.project == project

        return self._subscribed(Subscription(self._reach, self._wire, HUMAN, project, since, wanted))

    async def settle(
        self,
        session: str,
        turn: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (running out is an answer here, not an error)
    ) -> Settlement:
        """Wait until a turn's diagnosis has landed; also of a turn that settled long ago.

        turn: its id, "<session>/<closing trace's id>"; none: the last one that this client published for the session.
        timeout: seconds; none: the setting barrier_timeout_s. When it is over, the answer says so and the work goes on.
        """
        turn_id = turn or self._turns.last(session)
        if turn_id is None:
            return Settlement(session, None, SettleState.NOTHING_PUBLISHED)
        self._watch_published()
        landing = self._landings.watch(self._turns.find(session, turn_id))
        try:
            async with asyncio.timeout(self.settings.barrier_timeout_s if timeout is None else timeout):
                await self._landings.wait(turn_id)
        except TimeoutError:
            return landing.settlement(session, turn_id, SettleState.TIMED_OUT)
        return landing.settlement(session, turn_id, SettleState.LANDED)

    async def pending_sessions(self) -> dict[str, tuple[str, ...]]:
        """Return session -> its turns that this client published and that have not landed, oldest first."""
        if self._turns.waiting():
            self._watch_published()
            await self._landings.catch_up(LOOK_S)
        return self._turns.in_flight()

    async def drain(self, timeout: float = DRAIN_S) -> dict[str, tuple[str, ...]]:  # noqa: ASYNC109  (as for settle)
        """Wait for every turn that this client published, as long as *timeout*; returns those still in flight."""
        try:
            async with asyncio.timeout(timeout):
                await self._sender.flush(timeout)
                self._watch_published()
                for turn in self._turns.waiting():
                    await self._landings.wait(turn.turn_id)
        except TimeoutError:
            pass
        return self._turns.in_flight()

    def _watch_published(self) -> None:
        for turn in self._turns.waiting():
            self._landings.watch(turn, fresh=self._landings.active)

    def _subscribed(self, subscription: Subscription[Any]) -> Subscription[Any]:
        self._subscriptions = {item for item in self._subscriptions if item.alive} | {subscription}
        return subscription

    async def _submit_trace(self, recorder: TraceRecorder) -> None:
        if await self._submit("Trace", recorder.fields()):
            for fields in _scores_of(recorder):
                await self._submit("Score", fields)

    def _offer_trace(self, recorder: TraceRecorder) -> None:
        if self._offer("Trace", recorder.fields()):
            for fields in _scores_of(recorder):
                self._offer("Score", fields)

    async def _submit(self, name: Literal["Trace", "Score"], fields: Fields) -> bool:
        if (record := self._encoded(name, fields)) is None:
            return False
        turn = self._expect(name, fields)
        taken = False
        try:
            taken = await self._sender.submit(record)
        finally:
            if turn is not None and not taken:
                self._turns.withdraw(turn)
        return taken

    def _offer(self, name: Literal["Trace", "Score"], fields: Fields) -> bool:
        if (record := self._encoded(name, fields)) is None:
            return False
        turn = self._expect(name, fields)
        taken = self._sender.offer(record)
        if turn is not None and not taken:
            self._turns.withdraw(turn)
        return taken

    def _encoded(self, name: Literal["Trace", "Score"], fields: Fields) -> Encoded | None:
        try:
            return encode(self._wire, name, fields, self._redact)
        except Withheld:
            self._withheld += 1
        except InvalidRecord as error:
            self._refused += 1
            if self._strict:
                raise
            logger.warning("a %s was not published: %s", name.lower(), error)
        except Exception as error:
            self._refused += 1
            if self._strict:
                raise
            # Only the error's class: its words may hold what was to be redacted.
            logger.warning("a %s was not published: %s", name.lower(), type(error).__name__)
        return None

    def _expect(self, name: Literal["Trace", "Score"], fields: Fields) -> Turn | None:
        """Note the turn of what is about to be published, before any word of its end can come."""
        session, trace = str(fields["session_id"]), fields.get("trace_id")
        turn: Turn | None = None
        if name == "Trace":
            turn = self._turns.add_trace(
                session,
                str(trace),
                str(fields["status"]),
                now(),
                fields.get("turn_index"),
                ends_turn=fields.get("ends_turn", True),
            )
        elif trace is not None and fields.get("source") != ScoreSource.ANNOTATION:  # which never stands for a trace
            turn = self._turns.add_score(session, str(trace), now())
        if turn is not None and self._landings.active and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._landings.watch(turn, fresh=True))
        return turn


def _scores_of(recorder: TraceRecorder) -> list[Fields]:
    # What a broken-off trace was scored before it ended says nothing of it.
    if recorder.status == TraceStatus.ERROR:
        return []
    found = []
    for score in recorder.scores:
        more = {name: value for name, value in score.items() if name not in ("metric", "value")}
        found.append(score_fields(recorder.session_id, score["metric"], score["value"], recorder.trace_id, more))
    return found


def _settings(overrides: Mapping[str, Any]) -> Settings:
    loaded = load(overrides=overrides)
    if loaded.sources["bootstrap_servers"] != "default" or (found := announced()) is None:
        return loaded.settings
    return load(overrides={**overrides, "bootstrap_servers": found}).settings
