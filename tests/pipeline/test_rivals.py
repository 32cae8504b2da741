"""Two apps on the same topics: allowed, for one may be taking over, but not without a word."""

import asyncio
from pathlib import Path

from aiokafka.errors import KafkaError

from streams.agents.rivals import Rivals
from streams.broker import RunningBroker
from streams.engine import Offsets
from streams.security import connection
from streams.topics import EVAL_SCORES, NOTICE_CANDIDATES, SESSION_LOG, TRACE_INGESTED
from tests.pipeline.harness import Pipeline, pipeline


def rivals(running: Pipeline, app_id: str) -> list[str] | None:
    """Return what a worker of that app would warn of; none while the broker cannot tell."""

    async def look() -> list[str] | None:
        reach = connection(running.settings)
        topics = [running.topics[role].name for role in (TRACE_INGESTED, EVAL_SCORES, SESSION_LOG, NOTICE_CANDIDATES)]
        offsets = Offsets(reach, lists_ends=running.broker.fences)
        try:
            return await Rivals(app_id, topics, reach, offsets).look()
        except KafkaError:
            return None
        finally:
            await offsets.stop()

    return asyncio.run(look())


def test_another_app_on_the_same_topics_is_warned_of(broker: RunningBroker, tmp_path: Path) -> None:
    (tmp_path / "apart").mkdir()
    with (
        pipeline(broker, "green", tmp_path, log_format="json") as running,
        pipeline(broker, "apart", tmp_path / "apart") as apart,
    ):
        apart.start_worker()
        green = running.start_worker()
        running.wait_until(lambda: rivals(running, "blue") == ["green"], "first app")
        running.wait_until(lambda: rivals(running, "green") == [], "no rival of its own")
        blue = running.start_worker(app_id="blue")
        log = running.directory / "worker-1.log"
        running.wait_until(lambda: '"another_app"' in log.read_text(), "warning")
        (warning,) = [line for line in log.read_text().splitlines() if '"another_app"' in line]
        assert '"app_id": "green"' in warning
        assert "stop one of them" in warning
        running.stop_worker(green)
        running.wait_until(lambda: rivals(running, "green") == ["blue"], "the other alone")
        running.stop_worker(blue)
        running.wait_until(lambda: rivals(running, "green") == [], "nobody")
