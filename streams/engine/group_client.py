"""The group consumer's client: waits longer for the answers that the group's slowest member holds back."""

# ruff: noqa: SLF001  (aiokafka has no public way to do this; it is pinned)

from typing import Any

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import NodeNotReadyError, RequestTimedOutError
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest

# What the broker may take beyond the rebalance timeout; the Java client allows the same.
_SLACK_S = 5.0


class GroupClient(AIOKafkaClient):  # type: ignore[misc]
    """aiokafka has one request timeout for everything.

    JoinGroup is answered when all members have joined, so it may take the rebalance timeout.
    Cut off before, a worker calls the coordinator dead and joins anew, for as long as another
    member works on its last batch. All else is answered at once, or the broker is away.
    """

    def __init__(self, *, rebalance_timeout_s: float, **options: Any) -> None:
        super().__init__(**options)
        self._join_timeout_s = rebalance_timeout_s + _SLACK_S

    async def send(self, node_id: int, request: Any, *, group: int = ConnectionGroup.DEFAULT) -> Any:
        """Send a request and return its response; raises KafkaError."""
        if not isinstance(request, JoinGroupRequest | SyncGroupRequest):
            return await super().send(node_id, request, group=group)
        if not await self.ready(node_id, group=group):
            raise NodeNotReadyError(f"node {node_id} does not answer")
        conn = self._conns[(node_id, group)]
        usual = conn._request_timeout
        # The connection reads its timeout when it is handed a request, and not again.
        conn._request_timeout = max(usual, self._join_timeout_s)
        try:
            answer = conn.send(request)
        finally:
            conn._request_timeout = usual
        try:
            return await answer
        except TimeoutError as error:
            conn.close(reason=CloseReason.CONNECTION_TIMEOUT)
            raise RequestTimedOutError from error
