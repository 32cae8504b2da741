"""(b) A loop around confluent-kafka and nothing else: what (a) does, with librdkafka's threads below.

For each poll of up to 10,000 records: decode and fold, produce one output in twenty and one changelog record for each
touched session, flush, commit and wait for it. A linger of 5 ms, librdkafka's default, fills batches of up to 1 MB.
"""

import orjson
from confluent_kafka import Consumer, KafkaException, Message, Producer

from benchmarks.pipeline.contenders.task import INPUTS, OUTPUT_EVERY, Task, Tracked

POLL_RECORDS = 10_000


def run(task: Task) -> None:
    """Work until the process is ended."""
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": task.run,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": task.bootstrap,
            "acks": "all",
            "enable.idempotence": task.idempotent,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    consumer.subscribe(list(INPUTS))
    sessions: dict[bytes, Tracked] = {}
    seen = 0
    while True:
        polled = consumer.consume(POLL_RECORDS, timeout=0.2)
        touched: dict[bytes, Tracked] = {}
        for message in polled:
            key, value = _content(message)
            session = sessions.get(key)
            if session is None:
                session = sessions[key] = Tracked()
            session.fold(orjson.loads(value))
            touched[key] = session
            seen += 1
            if seen % OUTPUT_EVERY == 0:
                producer.produce(task.outputs, session.encoded(), key, on_delivery=_acknowledged)
        for key, session in touched.items():
            producer.produce(task.changelog, session.encoded(), key, on_delivery=_acknowledged)
        if polled:
            producer.flush()
            consumer.commit(asynchronous=False)


def _content(message: Message) -> tuple[bytes, bytes]:
    if error := message.error():
        raise KafkaException(error)
    key, value = message.key(), message.value()
    assert key is not None
    assert value is not None
    return key, value


def _acknowledged(error: object, _: Message) -> None:
    if error is not None:
        raise RuntimeError(f"not delivered: {error}")


if __name__ == "__main__":
    run(Task.of_process())
