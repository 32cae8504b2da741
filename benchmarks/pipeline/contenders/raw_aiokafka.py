"""(a) A loop around aiokafka and nothing else, with the durability of the pipeline: acks of all, then the commit.

For each poll: decode and fold every record, send one output in twenty and one changelog record for each session that
the poll touched, wait for all acks, commit. The client's own defaults, but for batches of 512 KiB, as ours has, and
for polls as large as what is at hand. A start would read the changelog first; that is not measured, so not written.
"""

import asyncio

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.pipeline.contenders.task import INPUTS, OUTPUT_EVERY, Task, Tracked

BATCH_BYTES = 512 * 1024


async def run(task: Task) -> None:
    """Work until the process is ended."""
    consumer = AIOKafkaConsumer(
        *INPUTS,
        bootstrap_servers=task.bootstrap,
        group_id=task.run,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=task.bootstrap, acks="all", enable_idempotence=task.idempotent, max_batch_size=BATCH_BYTES
    )
    await producer.start()
    await consumer.start()
    sessions: dict[bytes, Tracked] = {}
    seen = 0
    while True:
        polled = await consumer.getmany(timeout_ms=200)
        touched: dict[bytes, Tracked] = {}
        acks = []
        for records in polled.values():
            for record in records:
                session = sessions.get(record.key)
                if session is None:
                    session = sessions[record.key] = Tracked()
                session.fold(orjson.loads(record.value))
                touched[record.key] = session
                seen += 1
                if seen % OUTPUT_EVERY == 0:
                    acks.append(await producer.send(task.outputs, session.encoded(), key=record.key))
        for key, session in touched.items():
            acks.append(await producer.send(task.changelog, session.encoded(), key=key))
        if acks:
            await asyncio.gather(*acks)
            await consumer.commit()


if __name__ == "__main__":
    asyncio.run(run(Task.of_process()))
