"""(c) A plain Faust agent as Faust's documentation shows it: an event at a time, and a table write for each.

Faust's own defaults but for what its documentation advises: the raw key, JSON values, a table in memory, as many table
partitions as the inputs have. The changelog gets one record for each event: Faust has no other way. It commits by its
own interval of 2.8 s. Faust has no idempotent producer at least once.
"""

import sys
from typing import Any

import faust

from benchmarks.pipeline.contenders.task import INPUTS, OUTPUT_EVERY, Task, Tracked


def app_of(task: Task) -> faust.App:
    """Return the app; its table's changelog is named after it."""
    app = faust.App(
        task.run,
        broker=f"kafka://{task.bootstrap}",
        store="memory://",
        datadir=task.directory,
        topic_partitions=task.partitions,
        topic_disable_leader=True,
        autodiscover=False,
        web_enabled=False,
        consumer_auto_offset_reset="earliest",
        producer_acks=-1,
    )
    inputs = app.topic(*INPUTS, key_type=str, key_serializer="raw", value_serializer="json")
    outputs = app.topic(task.outputs, key_type=str, key_serializer="raw", value_serializer="json")
    sessions = app.Table("sessions", default=dict, partitions=task.partitions)
    seen = 0

    async def fold(stream: Any) -> None:
        nonlocal seen
        async for key, record in stream.items():
            session = Tracked(**sessions[key])
            session.fold(record)
            kept = {"peak": session.peak, "count": session.count}
            sessions[key] = kept
            seen += 1
            if seen % OUTPUT_EVERY == 0:
                await outputs.send(key=key, value=kept)

    app.agent(inputs, name="fold")(fold)
    return app


def main() -> None:
    """Work until the process is ended."""
    app = app_of(Task.of_process())
    sys.argv[1:] = ["worker", "--loglevel", "warn"]
    app.main()


if __name__ == "__main__":
    main()
