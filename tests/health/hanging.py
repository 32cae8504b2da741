"""tgate with a fault: the session stage never comes back from a batch that holds a record of the session `hangs`.

Or, told so, no table is ever restored.
"""

import asyncio
import os
import time
from typing import Any

from streams.agents.session import SessionStage
from streams.cli import main
from streams.engine import Batch, assignment

HOW = "HANG"
"""Variable: `awaits` hangs in an await, `blocks` keeps the event loop as well, `restores` hangs in a recovery."""

fold = SessionStage._fold


async def hang(stage: SessionStage, known: Any, batch: Batch) -> None:
    if any(record.key == b"hangs" for record in batch.records):
        if os.environ[HOW] == "awaits":
            await asyncio.Event().wait()
        while True:
            time.sleep(0.1)  # noqa: ASYNC251  (that is the fault)
    await fold(stage, known, batch)


async def never_restore(*_: Any) -> int:
    await asyncio.Event().wait()
    return 0


if __name__ == "__main__":
    if os.environ[HOW] == "restores":
        assignment.restore = never_restore
    else:
        SessionStage._fold = hang
    main()
