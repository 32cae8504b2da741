"""An evaluators' worker whose evaluator hangs or is slow for chosen sessions, and is the real one for all others.

Run as a module with the settings in TGATE_* variables, like `tgate evaluators`.
"""

import asyncio
import sys
from functools import partial
from pathlib import Path

from streams import telemetry, worker
from streams.evaluators.app import build
from streams.evaluators.build import make_evaluator
from streams.evaluators.evaluation import Evaluator, Subject, Verdict
from streams.settings import load
from streams.topics import EVALUATORS


class Trying:
    """Passes on to a real evaluator, but hangs on sessions named `hangs...`, and for `slow...` has its judge wait for a file."""

    def __init__(self, real: Evaluator, gate: Path, calls: Path) -> None:
        self._real = real
        self._gate = gate
        self._calls = calls
        self.health = real.health

    async def evaluate(self, metric: str, subject: Subject, *, model: str | None = None) -> Verdict:
        session_id, trace_id = subject.trace["session_id"], subject.trace["trace_id"]
        with self._calls.open("a") as calls:
            calls.write(f"{trace_id} {metric}\n")
        if session_id.startswith("hangs"):
            await asyncio.Event().wait()
        # Told by a file, from another process.
        while session_id.startswith("slow") and metric == "step_efficiency" and not self._gate.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return await self._real.evaluate(metric, subject, model=model)

    async def close(self) -> None:
        await self._real.close()


def main(directory: Path) -> int:
    settings = load().settings
    telemetry.configure(settings)
    evaluator = Trying(make_evaluator(settings), directory / "gate", directory / "calls")
    return worker.run(settings, lambda: None, partial(build, evaluator=evaluator), EVALUATORS)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
