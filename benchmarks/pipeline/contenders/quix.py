"""(d) A quixstreams application: both topics as one stream, the session's peak and counter in its changelogged state.

State is in RocksDB behind quixstreams' own cache: a checkpoint writes one changelog record for each session touched
since the last one, waits for all acks and commits. Its own defaults, but for that a checkpoint comes with every 10,000
records, which is as large as (b)'s polls are, and not by the clock: it would wait for that at the end, with nothing to do.
"""

from typing import Any

from quixstreams import Application, State

from benchmarks.pipeline.contenders.task import INPUTS, OUTPUT_EVERY, Task, Tracked

CHECKPOINT_RECORDS = 10_000
CHECKPOINT_S = 30.0
"""Longer than so many records take."""


def main() -> None:
    """Work until the process is ended."""
    task = Task.of_process()
    app = Application(
        broker_address=task.bootstrap,
        consumer_group=task.run,
        auto_offset_reset="earliest",
        commit_every=CHECKPOINT_RECORDS,
        commit_interval=CHECKPOINT_S,
        state_dir=task.directory,
        producer_extra_config={
            "acks": "all",
            "enable.idempotence": task.idempotent,
            "queue.buffering.max.messages": 1_000_000,
        },
        loglevel="WARNING",
    )
    seen = 0

    def fold(record: dict[str, Any], state: State) -> dict[str, Any]:
        nonlocal seen
        kept = state.get("session")
        session = Tracked(**kept) if kept else Tracked()
        session.fold(record)
        kept = {"peak": session.peak, "count": session.count}
        state.set("session", kept)
        seen += 1
        return kept

    traces, scores = (app.dataframe(app.topic(name, value_deserializer="json")) for name in INPUTS)
    sessions = traces.concat(scores).apply(fold, stateful=True)
    sessions = sessions[sessions.apply(lambda _: seen % OUTPUT_EVERY == 0)]
    sessions.to_topic(app.topic(task.outputs, value_serializer="json"))
    app.run()


if __name__ == "__main__":
    main()
