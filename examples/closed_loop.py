"""Does listening help? Real agents at the same missions, with and without acting on their notices.

python examples/closed_loop.py           beside `tgate up`, in a second terminal of the same directory
python examples/closed_loop.py --up      starts and ends a broker and a worker by itself

Needs the packages of examples/recording/requirements.txt; without them it makes an environment of its own, once.
Prints success rates, steps and notices for both, and the differences with their bootstrap intervals.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import mean

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / "build" / "closed-loop"
RESAMPLES = 10_000
PATIENCE_S = 120
AT_ONCE = 16


def environment() -> None:
    """Go on in an environment that has MiniGrid; make it if there is none."""
    if importlib.util.find_spec("minigrid") is not None:
        return
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        print(f"making the environment {ENVIRONMENT} (once) ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)  # noqa: S603
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wanted = ["-r", ROOT / "examples/recording/requirements.txt", "-c", ROOT / "constraints.txt"]
        subprocess.run([*install, *wanted, "-e", f"{ROOT}[embedded]"], check=True)  # noqa: S603
    os.execv(python, [str(python), *sys.argv])  # noqa: S606


@contextmanager
def up() -> Iterator[str]:
    """Run `tgate up` in a directory of its own; yields the broker's address."""
    with tempfile.TemporaryDirectory(prefix="tgate-closed-loop-") as directory:
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "streams", "up"]
        with subprocess.Popen(command, cwd=directory, env=environ, text=True, stderr=subprocess.PIPE) as process:  # noqa: S603
            try:
                yield _address(process, Path(directory))
            finally:
                process.terminate()


def _address(process: subprocess.Popen[str], directory: Path) -> str:
    found = directory / ".tgate" / "bootstrap"
    deadline = time.monotonic() + PATIENCE_S
    while not found.exists() or not found.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("tgate up did not come up")
        time.sleep(0.1)
    return found.read_text().split()[0]


def interval(differences: list[float]) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean difference; pairs are resampled."""
    chance = Random("bootstrap")
    means = sorted(mean(chance.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def table(pairs: list[tuple[Played, Played]]) -> str:
    """Write what came of the sessions, kind by kind and in all."""
    rows = [
        "| agent | sessions | solved: deaf | listening | steps: deaf | listening | notices: deaf | listening | handed over |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    kinds = list(dict.fromkeys(deaf.kind for deaf, _ in pairs))
    for kind in [*kinds, "all"]:
        some = [pair for pair in pairs if kind in (pair[0].kind, "all")]
        deaf, listening = zip(*some, strict=True)
        cells = [str(len(some))]
        for name in ("solved", "steps", "notices"):
            for arm in (deaf, listening):
                value = mean(getattr(item, name) for item in arm)
                cells.append(f"{value:.0%}" if name == "solved" else f"{value:.1f}")
        cells.append(str(sum(item.handed_over for item in listening)))
        rows.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(rows)


def differences(pairs: list[tuple[Played, Played]]) -> str:
    """Say how much listening changed, with how far chance alone may have moved it."""
    lines = []
    for name, what in (("solved", "success rate"), ("steps", "steps a session"), ("notices", "notices a session")):
        by_pair = [float(getattr(listening, name) - getattr(deaf, name)) for deaf, listening in pairs]
        low, high = interval(by_pair)
        scale, unit = (100, " points") if name == "solved" else (1, "")
        shown = f"{scale * mean(by_pair):+.1f}{unit}, 95 % interval {scale * low:+.1f} to {scale * high:+.1f}"
        lines.append(f"listening changes {what} by {shown} ({len(pairs)} pairs)")
    return "\n".join(lines)


async def play(bootstrap: str | None, missions: int) -> list[tuple[Played, Played]]:
    """Play every mission with every kind of agent twice; the order of the pairs does not depend on time."""
    overrides = {} if bootstrap is None else {"bootstrap_servers": bootstrap}
    async with Gate(when_full="wait", **overrides) as gate, Dispatch(gate) as dispatch:
        turnstile = asyncio.Semaphore(AT_ONCE)

        async def one(plan: Plan, *, listening: bool) -> Played:
            async with turnstile:
                return await ListeningSession(gate, dispatch, plan, listening=listening).play()

        plans = list(chosen(missions))
        deaf = await asyncio.gather(*(one(plan, listening=False) for plan in plans))
        listening = await asyncio.gather(*(one(plan, listening=True) for plan in plans))
        return list(zip(deaf, listening, strict=True))


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--up", action="store_true", help="start a broker and a worker")
    parser.add_argument("--missions", type=int, default=12, help="of each level, from the first fixed seed on")
    arguments = parser.parse_args()
    if arguments.up:
        with up() as address:
            pairs = asyncio.run(play(address, arguments.missions))
    else:
        pairs = asyncio.run(play(None, arguments.missions))
    print(table(pairs), differences(pairs), sep="\n\n")


if __name__ == "__main__":
    environment()

sys.path.insert(0, str(Path(__file__).parent / "recording"))

from listening import Dispatch, ListeningSession, Plan, Played, chosen  # noqa: E402  (only where MiniGrid is)

from streams.client import Gate  # noqa: E402

if __name__ == "__main__":
    main()
