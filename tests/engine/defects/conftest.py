"""Plain Faust beside the engine: its scenarios run in three processes at once, as most of each is waiting."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.broker import RunningBroker
from tests.engine.defects.plain import PARTITIONS, PATIENCE_S, TOPICS_OF
from tests.engine.workers import ROOT


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "defects: shows a defect of Faust or aiokafka that the engine works around")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("defects")


TRIES = 3


class Scenarios:
    """Processes of plain Faust, each with some scenarios, one after the other."""

    def __init__(self, broker: RunningBroker, directory: Path) -> None:
        self._broker = broker
        self._directory = directory
        self._name = self._first_name = f"plain-{time.time_ns() % 10**9}"
        self._processes: list[subprocess.Popen[str]] = []
        self._found: dict[str, Any] = {}

    def start(self) -> None:
        groups = [("restart", "failing"), ("read_offset", "live_set"), ("killed",)]
        if self._broker.fences:
            groups.append(("markers",))
        asyncio.run(self._prepare([scenario for group in groups for scenario in group]))
        for group in groups:
            self._run(*group)

    def _run(self, *scenarios: str) -> None:
        with (self._directory / f"{scenarios[0]}.log").open("w") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.engine.defects.plain"),
                    *(self._broker.bootstrap, self._name, str(self._directory / "data"), *scenarios),
                ],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "PLAIN_STORE": "rocksdb" if scenarios[0] in ("killed", "counts") else "memory",
                    "PLAIN_SESSION": "6" if self._broker.fences else "4",
                },
                text=True,
            )
        self._processes.append(process)

    async def _prepare(self, scenarios: list[str]) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._broker.bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(f"{self._name}-{scenario}-in", PARTITIONS, 1) for scenario in scenarios])
        if "markers" in scenarios:
            changelog = f"{self._name}-markers-counts-changelog"
            await admin.create_topics([NewTopic(changelog, PARTITIONS, 1)])
            options = {"bootstrap_servers": self._broker.bootstrap, "transactional_id": self._name}
            async with AIOKafkaProducer(**options) as producer, producer.transaction():
                # As Faust's JSON has them.
                await producer.send(changelog, b"1", key=b'"k"', partition=0)
        await admin.close()

    def shows(self, scenario: str, is_defect: Callable[[Any], bool]) -> bool:
        """Return whether plain Faust has the defect; it is a matter of chance, and it may hang instead: tried thrice.

        Raises:
            AssertionError: it never showed; says what was found each time.
        """
        tries = []
        for number in range(TRIES):
            if number:
                self._again(scenario, number)
            elif not self._found:
                self._collect()
                # On what the killed process has left.
                self._run("counts")
                self._collect()
            found = self._found.get(scenario, "it hung")
            if scenario in self._found and is_defect(found):
                return True
            tries.append(found)
        raise AssertionError(f"plain Faust does not show it in {scenario}: {tries}")

    def _again(self, scenario: str, number: int) -> None:
        """Run one scenario on topics of its own, with what has to go before it."""
        self._found.pop(scenario, None)
        self._name = f"{self._first_name}-{number}"
        first = TOPICS_OF.get(scenario, scenario)
        asyncio.run(self._prepare([first]))
        for name in dict.fromkeys((first, scenario)):
            self._run(name)
            self._collect()

    def _collect(self) -> None:
        for process in self._processes:
            try:
                said, _ = process.communicate(timeout=2 * PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()  # plain Faust hangs, at its start or its stop
                said, _ = process.communicate()
            for line in said.splitlines():
                self._found |= json.loads(line)
        self._processes.clear()

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture(scope="session")
def scenarios(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenarios]:
    made = Scenarios(broker, tmp_path_factory.mktemp("plain"))
    made.start()
    yield made
    made.kill()


@pytest.fixture
def shows(scenarios: Scenarios) -> Callable[[str, Callable[[Any], bool]], bool]:
    """Return what tells whether plain Faust shows a defect in a scenario."""
    return scenarios.shows
