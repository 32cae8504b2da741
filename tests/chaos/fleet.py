"""Worker processes in numbered places, each with a store and a state directory of its own, watched for crashes."""

import contextlib
import resource
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pipeline.harness import PATIENCE_S, Pipeline

WATCH_S = 0.5
DISK_BYTES = 64 * 1024 * 1024


@dataclass
class Place:
    """Where one worker runs. process: none while it is meant to be down."""

    number: int
    store: str
    state_dir: Path
    is_limited: bool = False
    """Whether its state directory is a file system of its own, of limited size."""
    process: subprocess.Popen[bytes] | None = None
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Crash:
    """A worker that ended although nobody ended it."""

    place: int
    code: int
    log: str
    at: float


class Fleet:
    """Starts and ends workers, and starts again the ones that crash, as a supervisor would."""

    def __init__(self, pipeline: Pipeline, stores: tuple[str, ...]) -> None:
        self._pipeline = pipeline
        self.places = [
            Place(number, store, pipeline.directory / f"state-{number}") for number, store in enumerate(stores)
        ]
        self.crashes: list[Crash] = []
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._mount(self.places[-2])
        self._watcher.start()

    def start(self, place: Place, **overrides: Any) -> None:
        with self._lock:
            place.overrides = overrides
            values = {"store": place.store, "state_dir": str(place.state_dir), **overrides}
            place.process = self._pipeline.start_worker(**values)

    def send(self, place: Place, number: signal.Signals) -> None:
        with self._lock:
            assert place.process is not None
            place.process.send_signal(number)

    def end(self, place: Place, how: signal.Signals) -> int:
        """End a worker and return its exit code; one that does not end in time is a failure of the run."""
        with self._lock:
            process, place.process = place.process, None
        if process is None:
            return 0
        process.send_signal(how)
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.crashes.append(Crash(place.number, -9, "did not end after SIGTERM", time.time()))
            return -9

    def running(self) -> list[Place]:
        return [place for place in self.places if place.process is not None]

    def wait_ready(self, patience_s: float) -> list[str]:
        """Wait until every worker has said that it reads all it was assigned; returns the logs of those that did not."""
        deadline = time.monotonic() + patience_s
        while True:
            with self._lock:
                logs = [self._log(place.process) for place in self.places if place.process is not None]
            missing = [log.name for log in logs if b"ready" not in log.read_bytes()]
            if not missing or time.monotonic() > deadline:
                return missing
            time.sleep(WATCH_S / 2)

    def limit_disk(self, place: Place, *, full: bool) -> str:
        """Fill or free the disk under a state directory; returns how."""
        if place.is_limited:
            ballast = place.state_dir / "ballast"
            if full:
                # The file system refuses the rest.
                with contextlib.suppress(OSError), ballast.open("wb") as file:
                    while True:
                        file.write(b"\0" * 4096)
                        file.flush()
            else:
                ballast.unlink(missing_ok=True)
            return "tmpfs"
        assert place.process is not None
        limit = 1 if full else resource.RLIM_INFINITY
        resource.prlimit(place.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return "RLIMIT_FSIZE"

    def wipe(self, place: Place) -> None:
        for item in list(place.state_dir.iterdir()) if place.state_dir.exists() else []:
            shutil.rmtree(item) if item.is_dir() else item.unlink()

    def stop(self) -> None:
        self._ended.set()
        self._watcher.join()
        for place in self.places:
            if place.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    place.process.send_signal(signal.SIGCONT)
                    place.process.kill()
                place.process.wait()
            if place.is_limited:
                subprocess.run(["umount", str(place.state_dir)], check=False)

    def _log(self, process: subprocess.Popen[bytes]) -> Path:
        return self._pipeline.directory / f"worker-{self._pipeline.workers.index(process)}.log"

    def _mount(self, place: Place) -> None:
        place.state_dir.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place.state_dir)]
        with contextlib.suppress(OSError):
            place.is_limited = subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _watch(self) -> None:
        while not self._ended.wait(WATCH_S):
            with self._lock:
                for place in self.places:
                    if place.process is not None and (code := place.process.poll()) is not None:
                        self.crashes.append(Crash(place.number, code, self._log(place.process).name, time.time()))
                        self.start(place, **place.overrides)
