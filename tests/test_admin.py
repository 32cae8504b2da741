"""Topics are made when every broker knows them."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from streams import admin

UNKNOWN_TOPIC = 3


class Follower:
    """A broker's answers about a topic, one a request: it learns late what the controller has decided."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)

    def answer(self) -> SimpleNamespace:
        told = {"topics": [self.answers.pop(0)]}
        return SimpleNamespace(to_object=lambda: told)


def _topic(*leaders: int, error: int = 0) -> dict[str, Any]:
    return {"error_code": error, "partitions": [{"leader": leader} for leader in leaders]}


def _client(followers: dict[int, Follower]) -> Any:
    async def send(node: int, request: object) -> SimpleNamespace:
        return followers[node].answer()

    brokers: Callable[[], list[SimpleNamespace]] = lambda: [SimpleNamespace(nodeId=node) for node in followers]  # noqa: E731
    return SimpleNamespace(
        _client=SimpleNamespace(cluster=SimpleNamespace(brokers=brokers)), _send_request_to_node=send
    )


def test_every_broker_is_asked_until_it_names_all_leaders() -> None:
    followers = {
        1: Follower(_topic(error=UNKNOWN_TOPIC), _topic(), _topic(1, -1), _topic(1, 2)),
        2: Follower(_topic(error=UNKNOWN_TOPIC), _topic(1, 2)),
    }
    asyncio.run(admin._known_everywhere(_client(followers), ["scores"]))
    assert not followers[1].answers
    assert not followers[2].answers


def test_nothing_is_asked_when_nothing_was_made() -> None:
    asyncio.run(admin._known_everywhere(_client({1: Follower()}), []))
