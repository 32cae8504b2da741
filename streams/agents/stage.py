"""What the folding stages share: compute, publish, remember, in that order, and start over from memory on failure."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import Generic, Protocol, TypeVar

import structlog
from aiokafka import ConsumerRecord

from streams.agents.metering import Meter
from streams.agents.outbox import EvalOutput, Outbox, Output
from streams.core.model import StepFailed
from streams.engine import Batch, Out, PartitionState, Publisher
from streams.errors import CoreFailure, InvalidRecord
from streams.tables import Changes

log = structlog.get_logger(__name__)


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

    async def on_restored(self, partition: int, state: PartitionState) -> int:
        """Take up a partition where its position record says."""
        fold = self.folds[partition] = self.take_up(partition, state)
        self._meter.recovered(partition, state.recovery)
        return fold.position

    def on_closed(self, partition: int) -> None:
        self.folds.pop(partition, None)
        self._meter.closed(partition)

    async def handle(self, batch: Batch) -> None:
        """Fold a batch; whatever goes wrong, the next try starts from what was remembered."""
        try:
            await self._fold(self.folds.get(batch.partition) or self.take_up(batch.partition, batch.state), batch)
        except BaseException:
            self.folds.pop(batch.partition, None)
            raise

    async def _fold(self, fold: F, batch: Batch) -> None:
        self.folds[batch.partition] = fold
        outs: list[Out] = []
        tally = self._meter.tally()

        def take(record: ConsumerRecord) -> None:
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
        fold.position = batch.next_offset
        await batch.state.commit(self.remember(fold, batch.partition), after=partial(self._publisher.publish, outs))
        batch.done()
        tally.count()
