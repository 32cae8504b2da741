"""Defects that need a race on a broker, shown on the classes that have them, and that ours have not.

A test of an upstream class that fails here: upstream has mended it.
"""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import aiokafka.client
import faust
import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.consumer.fetcher import Fetcher as KafkaFetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import KafkaConnectionError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest
from aiokafka.protocol.metadata import MetadataRequest, MetadataRequest_v5
from aiokafka.record.default_records import DefaultRecordBatch
from faust.tables.recovery import Recovery
from faust.transport.consumer import Fetcher
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP
from mode import Service

from streams.engine import Abilities, Connection, faust_app
from streams.engine.closing import close_consumer
from streams.engine.fetching import BatchConsumerThread
from streams.engine.group_client import GroupClient
from streams.engine.transport import BatchFetcher
from tests.engine.spoiling import spoil

NOWHERE = Connection("127.0.0.1:1")


def our_app(directory: Path) -> Any:
    return faust_app("defects", NOWHERE, stages=[], abilities=Abilities(fences=True), datadir=directory)


def test_recovery_activates_before_it_seeks() -> None:
    """Upstream 216, 217; faust-streaming 0.15.3."""
    recovery = MagicMock()
    recovery.app.consumer_generation_id = 0
    recovery.tables.values.return_value = []
    recovery.app.on_rebalance_complete.send = recovery.app._fetcher.maybe_start = recovery._wait = AsyncMock()
    recovery.app.consumer.assignment.return_value = {TP("t", 0)}
    asyncio.run(Recovery.on_recovery_completed(recovery))
    calls = [name for name, *_ in recovery.mock_calls]
    order = ["app.consumer.resume_partitions", "app.consumer.perform_seek", "app.flow_control.resume"]
    assert sorted(order, key=calls.index) == order


def stop_in_a_rebalance(fetcher_class: Any) -> Any:
    async def stop() -> Any:
        consumer = SimpleNamespace(_drain_messages=AsyncMock(side_effect=asyncio.CancelledError))
        fetcher = fetcher_class(SimpleNamespace(rebalancing=True, consumer=consumer))
        fetcher._stopped.set()
        await fetcher_class._fetcher.fun(fetcher)
        return fetcher

    return asyncio.run(stop())


def test_a_stop_in_a_rebalance_is_taken_for_a_crash() -> None:
    """No upstream report; faust-streaming 0.15.3."""
    with pytest.raises(AttributeError, match="wakeup"):
        stop_in_a_rebalance(Fetcher)


def test_our_fetcher_stops_in_a_rebalance() -> None:
    assert not stop_in_a_rebalance(BatchFetcher).crashed


def loops_that_close(thread_class: Any) -> list[bool]:
    """Say of each close whether it ran in the thread's loop."""

    async def close() -> list[bool]:
        ours: list[bool] = []

        async def note() -> None:
            ours.append(asyncio.get_running_loop() is thread.thread_loop)

        thread = object.__new__(thread_class)
        thread.thread_loop = object()
        thread.app = SimpleNamespace(loop=asyncio.get_running_loop())
        closing = SimpleNamespace(close=note)
        thread._consumer = SimpleNamespace(_closed=False, _client=closing, _coordinator=closing)
        thread.close()
        await asyncio.sleep(0.01)
        return ours

    return asyncio.run(close())


def test_the_client_is_closed_from_the_wrong_loop() -> None:
    """Upstream 175, 523, 532 are near; faust-streaming 0.15.3."""
    assert loops_that_close(AIOKafkaConsumerThread) == [False, False]


def test_our_thread_closes_its_client_itself() -> None:
    assert loops_that_close(BatchConsumerThread) == []


async def fetcher_in_a_pause() -> KafkaFetcher:
    """aiokafka's fetcher while it waits after a fetch that failed."""
    fetcher = object.__new__(KafkaFetcher)
    fetcher._client = SimpleNamespace(send=AsyncMock(side_effect=KafkaConnectionError))
    fetcher._invalidate_preferred_read_replica_for_node = MagicMock()
    fetcher._retry_backoff = 10
    fetcher._fetch_waiters = set()
    fetcher._fetch_task = asyncio.ensure_future(asyncio.sleep(0))
    fetcher._pending_tasks = {asyncio.ensure_future(fetcher._proc_fetch_request(None, 0, None))}
    await asyncio.sleep(0.01)
    return fetcher


def test_a_close_after_a_failed_fetch_is_cancelled() -> None:
    """No upstream report; aiokafka 0.14.0: the consumer's thread then dies, and its service waits for ever."""

    async def close() -> None:
        with pytest.raises(asyncio.CancelledError):
            await (await fetcher_in_a_pause()).close()

    asyncio.run(close())


def test_our_close_goes_on_after_a_failed_fetch() -> None:
    async def close() -> None:
        client = SimpleNamespace(close=AsyncMock())
        consumer = SimpleNamespace(stop=(await fetcher_in_a_pause()).close, _client=client, _group_id="g")
        await close_consumer(consumer, 1)
        client.close.assert_awaited_once()

    asyncio.run(close())


def test_our_close_does_not_wait_for_a_broker_that_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def close() -> None:
        never = AsyncMock(side_effect=asyncio.Event().wait)
        consumer = SimpleNamespace(stop=never, _client=SimpleNamespace(close=never), _group_id="g")
        await asyncio.wait_for(close_consumer(consumer, 0.05), 5)

    asyncio.run(close())
    assert [record.getMessage() for record in caplog.records] == [
        "the broker does not answer: the group g was not left"
    ]


def test_a_member_of_generation_0_does_not_leave() -> None:
    """No upstream report; aiokafka 0.14.0, on Tansu, whose first generation is 0."""
    member = MagicMock(generation=0, _group_instance_id=None, _send_req=AsyncMock())
    asyncio.run(GroupCoordinator._maybe_leave_group(member))
    member._send_req.assert_not_called()


async def timeouts(client: AIOKafkaClient) -> dict[type, float]:
    """Return how long each request may take."""
    found: dict[type, float] = {}

    def send(request: Any, **_: bool) -> Any:
        found[type(request)] = conn._request_timeout
        return asyncio.sleep(0)

    conn = SimpleNamespace(_request_timeout=15.0, send=send)
    client.ready = AsyncMock(return_value=True)
    client._conns[(0, ConnectionGroup.DEFAULT)] = conn
    for request in (JoinGroupRequest("g", 1, 1, "", "", "", []), HeartbeatRequest("g", 0, "m")):
        await client.send(0, request)
    assert conn._request_timeout == 15.0
    return found


def test_all_requests_have_one_timeout() -> None:
    """No upstream report; aiokafka 0.14.0."""

    async def ask() -> None:
        assert await timeouts(AIOKafkaClient()) == {JoinGroupRequest: 15.0, HeartbeatRequest: 15.0}

    asyncio.run(ask())


def test_our_client_waits_for_the_slowest_member() -> None:
    async def ask() -> None:
        client = GroupClient(rebalance_timeout_s=60.0)
        assert await timeouts(client) == {JoinGroupRequest: 65.0, HeartbeatRequest: 15.0}

    asyncio.run(ask())


def test_asking_for_a_topic_makes_it() -> None:
    """No upstream report; aiokafka 0.14.0 has the option, and no way to set it."""
    assert MetadataRequest(["t"]).build(MetadataRequest_v5).allow_auto_topic_creation is True


def test_no_client_of_ours_makes_a_topic_by_asking_for_it() -> None:
    assert aiokafka.client.MetadataRequest(["t"]).build(MetadataRequest_v5).allow_auto_topic_creation is False


def test_the_data_directory_is_made_without_its_parents(tmp_path: Path) -> None:
    """No upstream report; faust-streaming 0.15.3."""
    with pytest.raises(FileNotFoundError):
        faust.App("defects", datadir=str(tmp_path / "a" / "b"))._create_directories()


def test_our_app_makes_its_data_directory_with_its_parents(tmp_path: Path) -> None:
    asyncio.run(our_app(tmp_path / "a" / "b").on_first_start())
    assert (tmp_path / "a" / "b").is_dir()


def test_a_service_class_made_at_run_time_logs_as_abc() -> None:
    """No upstream report; mode-streaming 0.7.1."""
    assert type("Made", (Service,), {}).logger.name == "abc"


def test_our_services_log_under_their_modules(tmp_path: Path) -> None:
    app = our_app(tmp_path)
    services = [app.conf.TableManager, type(app.transport).Consumer]
    assert [service.logger.name for service in services] == ["streams.engine.assignment", "streams.engine.consumer"]


def test_a_header_name_that_is_no_text_cannot_be_decoded() -> None:
    """aiokafka 0.14.0; the error is no KafkaError, and comes again with each fetch."""
    batch = DefaultRecordBatch(bytearray(spoil(BatchBuilder(10_000, 0))))
    assert batch.validate_crc()
    with pytest.raises(UnicodeDecodeError):
        list(batch)
