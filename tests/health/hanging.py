"""tgate with a fault: the session stage never comes back from a batch that holds a record of the session `hangs`."""

import asyncio
import os
import time
from typing import Any

from streams.agents.session import SessionStage
from streams.cli import main
from streams.engine import Batch

HOW = "HANG"
"""Variable: `awaits` hangs in an await, `blocks` keeps the event loop as well."""

fold = SessionStage._fold


async def hang(stage: SessionStage, known: Any, batch: Batch) -> None:
    if any(record.key == b"hangs" for record in batch.records):
        if os.environ[HOW] == "awaits":
            await asyncio.Event().wait()
        while True:
            time.sleep(0.1)  # noqa: ASYNC251  (that is the fault)
    await fold(stage, known, batch)


if __name__ == "__main__":
    SessionStage._fold = hang
    main()
