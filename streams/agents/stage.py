"""What the folding stages share: compute, publish, remember, in that order, and start over from what is stored on failure."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import structlog
from aiokafka import ConsumerRecord

from streams.agents.metering import Meter
from streams.agents.outbox import EvalOutput, Outbox, Output
from streams.agents.remembering import Remembering
from streams.core.model import StepFailed
from streams.engine import Batch, Out, PartitionState, Publisher, Revoked, Table
from streams.errors import CoreFailure, InvalidRecord
from streams.tables import Changes

log = structlog.get_logger(__name__)

Rebuild = Callable[[PartitionState], None]
"""Has a partition built again from what is stored."""


def _no_app(state: PartitionState) -> None:
    """Build nothing: the stage belongs to no app yet."""


class Fold(Protocol):
    """A fold of one partition; `position` is the next offset it wants."""

    position: int


F = TypeVar("F", bound=Fold)
R = TypeVar("R")


class FoldStage(ABC, Generic[F, R]):
    """The owner of a fold for each assigned partition of one log."""

    def __init__(self, publisher: Publisher, outbox: Outbox, meter: Meter) -> None:
        self._publisher = publisher
        self._outbox = outbox
        self._meter = meter
        self.folds: dict[int, F] = {}
        self._remembering: dict[int, Remembering] = {}
        self.rebuild: Rebuild = _no_app

    @abstractmethod
    def take_up(self, partition: int, state: PartitionState) -> F:
        """Return the fold as the stored state has it."""

    @abstractmethod
    def read(self, record: ConsumerRecord) -> R:
        """Return what a record of the log says.

        Raises:
            InvalidRecord: it says nothing; it goes to the dead letters.
        """

    @abstractmethod
    def apply(self, fold: F, read: R) -> Iterable[Output | EvalOutput | StepFailed]:
        """Fold one record and return what it puts out."""

    @abstractmethod
    def remember(self, fold: F, partition: int) -> Changes:
        """Return the states touched since the last call, and the position that covers them."""

    def table(self, name: str, changelog: str, directory: Path | None) -> Table:
        """Return the table in which the folds are stored, to go with the stage."""
        return Table(name, changelog, self.on_restored, self.before_release, self.on_closed, directory)

    async def on_restored(self, partition: int, state: PartitionState) -> int:
        """Take up a partition where its position record says."""
        fold = self.folds[partition] = self.take_up(partition, state)
        self._remembering[partition] = Remembering(
            state, partial(self._changes, partition), partial(self.rebuild, state)
        )
        self._meter.recovered(partition, state.recovery)
        return fold.position

    def _changes(self, partition: int) -> Changes:
        return self.remember(self.folds[partition], partition)

    async def before_release(self, partition: int) -> None:
        """Store what is not stored yet."""
        if (remembering := self._remembering.get(partition)) is not None:
            await remembering.write()

    def on_closed(self, partition: int) -> None:
        self.folds.pop(partition, None)
        if (remembering := self._remembering.pop(partition, None)) is not None:
            remembering.close()
        self._meter.closed(partition)

    async def handle(self, batch: Batch) -> None:
        """Fold a batch; whatever goes wrong, the next try starts from what was stored."""
        remembering = self._remembering.get(batch.partition)
        if remembering is None:
            raise Revoked(f"{batch.tp.topic}-{batch.partition} was revoked before the batch was begun")
        async with remembering.turn:
            batch.check_owned()  # it may have waited while the partition was built again from an earlier offset
            fold = self.folds.get(batch.partition) or self.take_up(batch.partition, batch.state)
            self.folds[batch.partition] = fold
            try:
                await self._fold(fold, batch)
                remembering.published(batch)
            except BaseException as error:
                if self.folds.get(batch.partition) is fold:
                    del self.folds[batch.partition]
                if isinstance(error, Exception):
                    await remembering.forget()
                raise

    async def _fold(self, fold: F, batch: Batch) -> None:
        start = fold.position
        outs: list[Out] = []
        tally = self._meter.tally()

        def take(record: ConsumerRecord) -> None:
            if record.offset < start:
                return  # read again after a rebalance in which it was folded, and not stored yet
            try:
                read = self.read(record)
            except InvalidRecord as error:
                outs.append(self._outbox.dead_letter(record, error))
                tally.dead_letter(error)
                return
            for output in self.apply(fold, read):
                if isinstance(output, StepFailed):
                    failure = CoreFailure(output.error)
                    outs.append(self._outbox.dead_letter(record, failure))
                    tally.dead_letter(failure)
                    log.error("step_failed", name=output.name, error=output.error, offset=record.offset)
                else:
                    outs.append(self._outbox.record(output))
                    tally.output(output)

        await batch.each(take)
        fold.position = max(start, batch.next_offset)
        await self._publisher.publish(outs)
        tally.count()
