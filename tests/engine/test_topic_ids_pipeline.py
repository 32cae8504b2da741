"""The whole pipeline over an input topic that is deleted and made again: every score is judged once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from streams.broker import RunningBroker
from tests.engine.test_topic_ids import delete_and_create
from tests.pipeline.harness import pipeline

START = 1_767_603_600_000


def scores(word: str, count: int) -> list[dict[str, Any]]:
    """One score for each of so many sessions."""
    return [
        {
            "score_id": f"{word}-{number}",
            "session_id": f"{word}-{number}",
            "trace_id": f"{word}-{number}-1",
            "name": "task_completion",
            "value": "0.5",
            "created_at": START + number,
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("again", [10, 90])
def test_scores_of_a_topic_made_again(broker: RunningBroker, tmp_path: Path, again: int) -> None:
    with pipeline(broker, f"made-again-{again}", tmp_path, unannounced_wait_s=0, first_score_wait_s=1) as running:
        running.start_worker()
        running.publish(scores("old", 30))
        running.wait_settled(30)
        asyncio.run(delete_and_create(broker.bootstrap, running.topics["eval-scores"].name, 3))
        running.publish(scores("new", again))
        running.wait_settled(30 + again)
        settled = [item["session_id"] for item in running.values("turn-settled")]
        assert len(settled) == len(set(settled)) == 30 + again
