"""Closes aiokafka's clients for certain, and within a time."""

# ruff: noqa: SLF001  (aiokafka has no public way to do this; it is pinned)

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer

logger = logging.getLogger(__name__)


async def close_consumer(consumer: AIOKafkaConsumer, timeout_s: float) -> None:
    """Leave the group and close; without a broker, stop waiting for it after timeout_s.

    aiokafka's stop() raises CancelledError, or leaves its connections open, when one of its
    fetches was cancelled while it paused after an error; and it waits for answers to the
    group's requests for as long as they may take.
    """
    if not await _ended(consumer.stop(), timeout_s):
        logger.warning("the broker does not answer: the group %s was not left", consumer._group_id)
    await _ended(consumer._client.close(), timeout_s)


async def _ended(work: Coroutine[Any, Any, None], timeout_s: float) -> bool:
    """Run to the end and say whether it came; what was raised on the way does not matter any more."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=timeout_s)
        return task.done()
    finally:
        task.cancel()
        task.add_done_callback(_see)


def _see(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.debug("a client that was closed ended with %r", error)
