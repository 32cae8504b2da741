"""What a stranger can reach by default: nothing off this machine, and nothing that unpickles what it is sent."""

import base64
import os
import pickle
import re
import struct
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

from streams.app import build
from streams.broker import ApacheKafka, EmbeddedBroker, RunningBroker
from streams.engine import Abilities
from streams.engine.transport import BatchSchema
from streams.readiness import Ready
from streams.security import connection
from streams.settings import Settings
from streams.topics import BY_ROLE
from tests.pipeline.harness import pipeline

ROOT = Path(__file__).parents[2]
LISTENING = "0A"
UNSAFE = re.compile(
    r"^\s*(import|from)\s+(pickle|cPickle|dill|cloudpickle|marshal|shelve|jsonpickle)\b"
    r"|\b(pickle|marshal|shelve)\.\w|\byaml\.(load|unsafe_load)\b|(?<![\w.])(eval|exec)\(|[\"']pickle[\"']",
    re.MULTILINE,
)


def listeners(pid: int) -> set[tuple[IPv4Address | IPv6Address, int]]:
    """Return the addresses on which a process listens, from Linux's tables."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(descriptor.readlink()))
        except OSError:
            continue  # closed meanwhile
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == LISTENING and f"socket:[{rest[5]}]" in inodes:
                address, port = local.split(":")
                found.add((_address(address), int(port, 16)))
    return found


def _address(text: str) -> IPv4Address | IPv6Address:
    # Words of 32 bits in the machine's order.
    words = struct.pack(f"={len(text) // 8}I", *(int(text[at : at + 8], 16) for at in range(0, len(text), 8)))
    found = ip_address(words)
    return getattr(found, "ipv4_mapped", None) or found


def process_of(broker: RunningBroker) -> int:
    if isinstance(broker, ApacheKafka):
        return broker.pid()
    assert isinstance(broker, EmbeddedBroker)
    return broker.pid


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's tables of sockets")
def test_nothing_listens_beyond_loopback(broker: RunningBroker, tmp_path: Path) -> None:
    """Neither the broker that we start nor a worker, whose one listener is switched on here."""
    served = listeners(process_of(broker))
    assert served
    assert all(address.is_loopback for address, _ in served), served
    with pipeline(broker, "loopback", tmp_path, health_port=0) as running:
        worker = running.start_worker()
        running.wait_until(lambda: b"ready" in (tmp_path / "worker-0.log").read_bytes(), "ready worker")
        opened = listeners(worker.pid)
        assert opened
        assert all(address.is_loopback for address, _ in opened), opened


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_pickles_are_dead_letters(broker: RunningBroker, tmp_path: Path) -> None:
    """As they are and in Faust's own form; on every topic that a stage reads, inputs and the candidates' log."""
    burst = tmp_path / "burst"
    plain = pickle.dumps(Bomb(burst))
    bombs = [plain, base64.b64encode(plain), pickle.dumps(Bomb(burst), 0)]
    lines = [(role, bomb, bomb) for role in ("trace-ingested", "eval-scores") for bomb in bombs]
    with pipeline(broker, "pickles", tmp_path, tier1_metrics="task_completion") as running:
        running.start_worker()
        running.publish(lines)
        running.wait_until(lambda: len(running.read("dead-letters")) == len(lines), "dead letters")
        assert {record.value for record in running.read("dead-letters")} == set(bombs)
    assert not burst.exists()
    pickle.loads(plain)
    assert burst.exists()


def test_faust_decodes_nothing() -> None:
    """Faust registers a pickle codec by itself; no topic of ours ever comes to a codec."""
    settings = Settings()
    ready = Ready(connection(settings), Abilities(fences=True), dict.fromkeys(BY_ROLE, 1))
    made = build(settings, ready)
    assert (made.conf.key_serializer, made.conf.value_serializer) == ("raw", "raw")
    agents = list(made.agents.values())
    assert agents
    for agent in agents:
        assert isinstance(agent.channel.schema, BatchSchema)
        assert {agent.channel.key_serializer, agent.channel.value_serializer} <= {None, "raw"}
    assert not made.tables
    assert made.conf.web_enabled is False
    assert made.conf.autodiscover is False


def test_the_code_unpickles_and_evaluates_nothing() -> None:
    sources = [path for folder in ("streams", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert sources
    found = {
        (str(path.relative_to(ROOT)), hit.group()) for path in sources for hit in UNSAFE.finditer(path.read_text())
    }
    # It compiles functions from the schemas of this package.
    assert found <= {("streams/wire/emitter.py", "exec(")}


def test_the_disk_store_takes_bytes_only() -> None:
    """Outside its raw mode rocksdict pickles what it is given, and unpickles what it finds."""
    source = (ROOT / "streams" / "engine" / "stores.py").read_text()
    assert source.count("Rdict(") == source.count("Options(raw_mode=True)") == 1


def test_compose_publishes_on_loopback_only() -> None:
    ports = re.findall(r"^\s+- (\S+:\d+:\d+)$", (ROOT / "infra" / "compose.yaml").read_text(), re.MULTILINE)
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
