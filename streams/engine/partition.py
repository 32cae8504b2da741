"""A partition of a topic. aiokafka's pair equals Faust's, and needs no Faust."""

from aiokafka import TopicPartition as TP  # noqa: N817  (Faust's name for it)

__all__ = ["TP"]
