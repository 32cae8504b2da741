"""What a stage gets from Faust's stream: the records of one partition since the last batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from aiokafka import ConsumerRecord

from streams.engine.errors import Revoked, TopicReplaced
from streams.engine.partition import TP

if TYPE_CHECKING:
    from streams.engine.lanes import Lane
    from streams.engine.state import PartitionState


class Batch:
    """Records of one partition, in order; the partition's next batch comes after this one's ack.

    records: aiokafka's ConsumerRecords, at least one.
    first_offset: offset of the first; next_offset: where reading goes on after the last.
    """

    __slots__ = ("_lane", "first_offset", "is_done", "next_offset", "records", "tp")

    def __init__(self, lane: Lane, records: Sequence[ConsumerRecord], next_offset: int) -> None:
        self._lane = lane
        self.tp: TP = lane.tp
        self.records = records
        self.first_offset: int = records[0].offset
        self.next_offset = next_offset
        self.is_done = False

    @property
    def partition(self) -> int:
        """The partition the records are from."""
        partition: int = self.tp.partition
        return partition

    @property
    def state(self) -> PartitionState:
        """The partition's state; only for a stage with a table."""
        if self._lane.state is None:
            raise LookupError(f"{self.tp.topic} has no table")
        return self._lane.state

    @property
    def topic_id(self) -> str:
        """Id of the topic that the records are from, once `check_topic` has found it so; empty where the broker has none."""
        return self._lane.topic_id

    async def check_topic(self) -> None:
        """Make sure that all the records are of the topic with this id. For a stage without a table.

        Ids do not come back: the one that was so before the first read and is so now, after the
        last, was so for every read between.

        Raises TopicReplaced when it is another one now, after which the new topic is read;
        KafkaError when there is no such topic, or its leader does not answer.
        """
        lane = self._lane
        if (now := await lane.ask_topic_id(self.tp)) != lane.topic_id:
            raise TopicReplaced(f"{self.tp.topic} was made again: it was {lane.topic_id}, now it is {now}")

    async def each(self, work: Callable[[ConsumerRecord], None]) -> None:
        """Call *work* with each record, in order, taking turns with the worker's other batches."""
        await self._lane.slices.each(self.records, work, self._lane.reading.rank)

    def done(self) -> None:
        """Say that all effects of the batch are acknowledged, so its offset may be committed.

        A batch that comes back to Faust without this is read again.
        Raises Revoked when the partition is not this worker's any more.
        """
        self.check_owned()
        self.is_done = True
        self._lane.settled = self.next_offset

    def published(self) -> None:
        """Say that all outputs of the batch are acknowledged, and that its state is stored later, with its `done`.

        The partition's next batch may come meanwhile. If one fails, all that is not done is read again.
        Raises Revoked when the partition is not this worker's any more.
        """
        self.check_owned()
        self.is_done = True
        self._lane.published = self.next_offset

    def check_owned(self) -> None:
        """Raise Revoked when the partition is not this worker's any more."""
        if self._lane.closed:
            raise Revoked(f"{self.tp.topic}-{self.tp.partition} was revoked")

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<Batch {self.tp.topic}-{self.partition} {self.first_offset}..{self.next_offset}>"
