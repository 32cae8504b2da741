"""Dead letters are listed, shown whole and published again as they came."""

import asyncio
import json

from aiokafka import AIOKafkaProducer
from click.testing import CliRunner

from streams.agents.outbox import Outbox
from streams.broker import RunningBroker
from streams.cli import cli
from streams.errors import InvalidValue
from streams.topics import DEAD_LETTERS, EVAL_SCORES, SESSION_LOG
from streams.wire import Wire
from tests.pipeline.harness import Pipeline, pipeline


class Record:
    """An input record as a stage meets it."""

    def __init__(self, topic: str, partition: int, offset: int, value: bytes) -> None:
        self.topic, self.partition, self.offset, self.value = topic, partition, offset, value
        self.timestamp, self.key, self.headers = 1000 + offset, b"k", (("theirs", b"kept"),)


def put(running: Pipeline, *records: Record) -> None:
    outbox = Outbox(Wire.of(running.settings), running.topics, {DEAD_LETTERS: 2})

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=running.broker.bootstrap)
        await producer.start()
        for record in records:
            out = outbox.dead_letter(record, InvalidValue("value", "7", "a decimal in [0, 1]"))
            await producer.send_and_wait(out.topic, out.value, key=out.key, headers=list(out.headers), partition=0)
        await producer.stop()

    asyncio.run(send())


def tgate(running: Pipeline, *arguments: str, code: int = 0) -> str:
    chosen = [
        "--bootstrap",
        running.broker.bootstrap,
        "-s",
        f"topic_names={json.dumps(running.overrides['topic_names'])}",
    ]
    done = CliRunner().invoke(cli, [*chosen, "dlq", *arguments])
    assert done.exit_code == code, done.output
    return done.stdout


def test_list_show_and_redrive(broker: RunningBroker, tmp_path) -> None:
    with pipeline(broker, "dlq", tmp_path) as running:
        scores, log = running.topics[EVAL_SCORES].name, running.topics[SESSION_LOG].name
        twice = Record(scores, 1, 5, b'{"value": 7}')
        put(running, twice, twice, Record(log, 0, 9, b"\xff\x00"))

        rows = [json.loads(line) for line in tgate(running, "list", "--json").splitlines()]
        assert [(row["topic"], row["offset"], row["error"]) for row in rows] == [
            (scores, 5, "InvalidValue"),
            (log, 9, "InvalidValue"),
        ]
        assert rows[0]["message"] == "value is '7', expected a decimal in [0, 1]"
        assert rows[0]["headers"] == {"theirs": "kept"}
        assert rows[1]["value_base64"] == "/wA="
        assert [
            json.loads(line)["topic"] for line in tgate(running, "list", "--topic", log, "--json").splitlines()
        ] == [log]
        assert '{"value": 7}' in tgate(running, "show", rows[0]["place"])
        assert tgate(running, "show", "0:999", code=1) == ""

        assert running.read(EVAL_SCORES) == []
        tgate(running, "redrive", code=2)
        tgate(running, "redrive", "--all", "--dry-run")
        assert running.read(EVAL_SCORES) == []
        tgate(running, "redrive", "--all")
        (again,) = running.read(EVAL_SCORES)
        assert (again.partition, again.key, again.value) == (1, b"k", b'{"value": 7}')
        assert dict(again.headers) == {"theirs": b"kept", "redriven-from": rows[0]["place"].encode()}


def test_what_was_redriven_is_marked_and_left_out_the_next_time(broker: RunningBroker, tmp_path) -> None:
    with pipeline(broker, "dlq-marks", tmp_path) as running:
        scores = running.topics[EVAL_SCORES].name
        first, second = Record(scores, 1, 5, b"1"), Record(scores, 1, 6, b"2")
        put(running, first, first, second)
        tgate(running, "redrive", "0:1")  # the repeat of the first one
        rows = [json.loads(line) for line in tgate(running, "list", "--json").splitlines()]
        assert [(row["place"], row["redriven"] is not None) for row in rows] == [("0:0", True), ("0:2", False)]
        assert "redriven" in tgate(running, "list")
        tgate(running, "redrive", "--all")
        assert [record.value for record in running.read(EVAL_SCORES)] == [b"1", b"2"]
        tgate(running, "redrive", "--all")
        assert len(running.read(EVAL_SCORES)) == 2
        tgate(running, "redrive", "0:0")
        assert [record.value for record in running.read(EVAL_SCORES)] == [b"1", b"2", b"1"]
