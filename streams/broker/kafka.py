"""Apache Kafka on this machine, through the scripts of the source checkout."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.broker.processes import LOOPBACK, PortTaken, ports_to_try, when_we_die
from streams.broker.running import RunningBroker
from streams.errors import BrokerUnavailable

_SCRIPT = Path(__file__).resolve().parents[2] / "infra" / "kafka" / "kafka.sh"
_EXIT_PORT_TAKEN = 3


@dataclass(frozen=True)
class ApacheKafka(RunningBroker):
    """One broker or three, numbered from 1; each can be ended and started alone."""

    directory: Path
    brokers: int

    def pid(self, broker: int = 1) -> int:
        """Return the process id of this broker's last start."""
        return int((self.directory / f"broker-{broker}" / "pid").read_text())

    def log(self, broker: int = 1) -> Path:
        """Return the log of this broker's last start."""
        return self.directory / f"broker-{broker}" / "server.log"

    def kill(self, broker: int = 1) -> None:
        """End one broker with SIGKILL, as a crash would."""
        self._one("kill", broker)

    def stop(self, broker: int = 1) -> None:
        """Shut one broker down in good order."""
        self._one("stop", broker)

    def start(self, broker: int = 1) -> None:
        """Start one broker again on its data and its port; return when it serves."""
        self._one("start", broker)

    def _one(self, command: str, broker: int) -> None:
        _kafka(command, "--dir", str(self.directory), "--only", str(broker))


@contextmanager
def apache_kafka(
    directory: Path, port: int | None = None, brokers: int = 1, extra: Path | None = None
) -> Iterator[ApacheKafka]:
    """Run Apache Kafka while the block lasts.

    It needs Java 17, and Maven for the first start. Ctrl-C in the terminal does
    not reach the brokers. They stop with the block, and also when this process
    dies without leaving it.

    directory: for data, settings and logs; what it holds is kept and used again.
    port: of the first broker; without one, that of the last start, or a free one.
    brokers: 1, or a cluster of 3 with every record on each of them.
    extra: a file of lines for server.properties, over ours: listeners, logins, an authorizer.

    Raises BrokerUnavailable when there is no source checkout, no Java or no start,
    and when brokers run on this directory already.
    """
    directory = directory.absolute()
    _refuse_second_start(directory)
    with when_we_die("bash", str(_SCRIPT), "stop", "--dir", str(directory)):
        try:
            first = _start(directory, port, brokers, extra)
            yield ApacheKafka(
                bootstrap=",".join(f"{LOOPBACK}:{first + each}" for each in range(brokers)),
                name=f"Apache Kafka {_kafka('version')}",
                keeps=f"data in {directory}",
                forgets=False,
                fences=True,
                compacts=True,
                directory=directory,
                brokers=brokers,
            )
        finally:
            _kafka("stop", "--dir", str(directory))


def _refuse_second_start(directory: Path) -> None:
    """Two owners of one directory would stop each other's brokers."""
    status = _script("status", "--dir", str(directory)).stdout
    if running := re.search(r"on (\S+), pid (\d+)", status):
        raise BrokerUnavailable(
            f"brokers of {directory} run already: connect to {running[1]}, "
            f"or stop them with: {_SCRIPT} stop --dir {directory}"
        )


def _start(directory: Path, port: int | None, brokers: int, extra: Path | None) -> int:
    """Start all brokers and return the port of the first."""
    # Each broker has a second port, for its controller.
    for chosen in ports_to_try(port or _last_port(directory), adjacent=2 * brokers):
        try:
            _kafka(
                *("start", "--dir", str(directory)),
                *("--brokers", str(brokers), "--port", str(chosen)),
                *(("--extra", str(extra)) if extra else ()),
            )
        except PortTaken as taken:
            refused = taken
            if port is not None:
                break
        else:
            return chosen
    raise BrokerUnavailable(str(refused))


def _last_port(directory: Path) -> int | None:
    conf = directory / "cluster.conf"
    return int(conf.read_text().partition("saved_port=")[2]) if conf.exists() else None


def _kafka(*arguments: str) -> str:
    """Have kafka.sh do something and return what it printed."""
    done = _script(*arguments)
    if done.returncode == _EXIT_PORT_TAKEN:
        raise PortTaken(done.stderr.strip())
    if done.returncode != 0:
        raise BrokerUnavailable((done.stderr or done.stdout).strip())
    return done.stdout.strip()


def _script(*arguments: str) -> subprocess.CompletedProcess[str]:
    if not _SCRIPT.exists():
        raise BrokerUnavailable(
            "Apache Kafka is started by infra/kafka of the source checkout, which an installed "
            "package does not carry: clone the project, or name a broker of your own"
        )
    return subprocess.run(  # noqa: S603  our own script
        ["bash", str(_SCRIPT), *arguments],  # noqa: S607  the user's bash, wherever it is
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
