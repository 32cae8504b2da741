"""How to reach the broker, and what it is able to do."""

# ruff: noqa: SLF001  (aiokafka and Faust have no public way to do this; both are pinned)

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiokafka.client
from aiokafka import AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError, UnknownError
from aiokafka.protocol.metadata import MetadataRequest

logger = logging.getLogger(__name__)

# Where brokers make topics that somebody asks for, aiokafka's clients would make one that was
# just deleted, with the broker's partition count; the option is not passed on to their users.
aiokafka.client.MetadataRequest = partial(MetadataRequest, allow_auto_topic_creation=False)

_INIT_PRODUCER_ID, _ADD_PARTITIONS, _END_TXN, _WRITE_TXN_MARKERS = 22, 24, 26, 27
_ATTEMPTS = 3


@dataclass(frozen=True)
class Connection:
    """Where the broker is and how to log in.

    bootstrap: host:port, several separated by commas.
    security: aiokafka's security arguments (security_protocol, ssl_context, sasl_...).
    request_timeout_ms: how long a request may stay without an answer.
    """

    bootstrap: str
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)
    request_timeout_ms: int = 15_000

    def options(self) -> dict[str, Any]:
        """Return the arguments every aiokafka client takes."""
        return {
            "bootstrap_servers": self.bootstrap.split(","),
            "request_timeout_ms": self.request_timeout_ms,
            **self.security,
        }


@dataclass(frozen=True)
class Abilities:
    """What the broker can do beyond storing records.

    fences: it has idempotent producers and transactions, so that a replaced worker's
        state writes are refused. Without this, ListOffsets is not trusted either: the
        one broker known to lack transactions (Tansu) also gets that wrong.
    """

    fences: bool


async def abilities(connection: Connection) -> Abilities:
    """Ask the broker what it is able to do.

    The list of its requests is not enough: Tansu lists InitProducerId and refuses it.
    So a producer id is asked for. A refusal counts only where the broker also does not
    list WriteTxnMarkers, without which no transaction can end; elsewhere it is an error,
    for working unfenced by mistake would be worse than not starting.

    Raises KafkaError when the broker does not answer.
    """
    requests = await _requests(connection)
    if not {_INIT_PRODUCER_ID, _ADD_PARTITIONS, _END_TXN} <= requests:
        return Abilities(fences=False)
    for attempt in range(_ATTEMPTS):
        try:
            await _ask_for_producer_id(connection)
        except UnknownError:
            if _WRITE_TXN_MARKERS not in requests:
                return Abilities(fences=False)
            if attempt == _ATTEMPTS - 1:
                raise
            await asyncio.sleep(0.5)
        else:
            break
    return Abilities(fences=True)


async def _requests(connection: Connection) -> set[int]:
    client = AIOKafkaClient(**connection.options())
    try:
        await client.bootstrap()
        conn = await client._get_conn(client.get_random_node())
        if conn is None:
            raise KafkaError(f"no broker answers at {connection.bootstrap}")
        return set(conn._versions)
    finally:
        await client.close()


async def _ask_for_producer_id(connection: Connection) -> None:
    # The refusal that is expected here must not look like a failure in the log.
    sender_log = logging.getLogger("aiokafka.producer.sender")
    sender_log.addFilter(_not_init_producer_id)
    producer = AIOKafkaProducer(**connection.options(), enable_idempotence=True)
    try:
        await producer.start()
    finally:
        await producer.stop()
        sender_log.removeFilter(_not_init_producer_id)


def _not_init_producer_id(record: logging.LogRecord) -> bool:
    return "InitProducerId" not in str(record.msg)
