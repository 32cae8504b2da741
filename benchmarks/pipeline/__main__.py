"""How fast the pipeline is beside raw clients and other stream processors: one run, same data, same machine.

    python -m benchmarks.pipeline                     on Apache Kafka, then on the embedded broker
    python -m benchmarks.pipeline --brokers kafka --rounds 1 --records 30000 --contenders ae

Every contender is a process of its own that consumes a backlog loaded before: (a) raw aiokafka, (b) raw
confluent-kafka, (c) a plain Faust agent, (d) quixstreams, (e) `tgate worker` with both hops, detection and guarantee.
(a) to (d) decode and fold a peak and a counter, put out one record in twenty and keep a changelog; (e) does all it is
for. All: acks of all replicas, idempotent producers where the client and the broker have them, no compression, equal
partition counts. A record is done when its group has committed it and its outputs are in their topic, both looked at
from outside. The first tenth of the records is warm-up. Contenders take turns, in another order each round; one that
is not through after --limit seconds is measured on what it has done. Only (e) cares how fast the backlog was written:
it reads partitions side by side by record time; see --backlog-rate.
"""

import argparse
import asyncio
import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.pipeline.contender import CONTENDERS, OURS, Contender
from benchmarks.pipeline.latency import latency
from benchmarks.pipeline.machine import facts
from benchmarks.pipeline.records import Workload
from benchmarks.pipeline.report import Measured, document, said, show, wide_console, write
from benchmarks.pipeline.scene import Failed, Scene
from streams.broker import ApacheKafka, EmbeddedBroker, apache_kafka, embedded

BROKERS = ("kafka", "embedded")
STEP = 30_000
"""Records come in multiples of this: whole turns, whole outputs, and whole checkpoints of quixstreams."""


def main() -> None:
    """Measure, print, write."""
    options = _options()
    # Topics that were just made have no leaders for a moment, which the client library says once for each.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    console = wide_console()
    before = facts()
    measured = []
    for name in options.brokers.split(","):
        with tempfile.TemporaryDirectory(prefix="tgate-bench-") as directory, _broker(name, Path(directory)) as broker:
            measured.append(asyncio.run(_measure(console, broker, Path(directory), options)))
        show(console, measured[-1])
    path = write(document(before, vars(options), measured), f"{options.name}-{before['commit']}")
    console.print(f"written to {path}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--brokers", default=",".join(BROKERS), help="kafka, embedded or both, comma-separated")
    parser.add_argument("--contenders", default="abcde", help="their letters")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=300_000, help=f"of the backlog, in steps of {STEP:,}")
    parser.add_argument("--partitions", type=int, default=8, help="of every topic")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one run after its first record")
    parser.add_argument(
        "--backlog-rate", type=float, default=20_000.0, help="records a second at which the backlog was written"
    )
    parser.add_argument("--latency", type=float, default=30.0, help="seconds of paced load; 0: none")
    parser.add_argument("--name", default="pipeline", help="first part of the name of the file of results")
    options = parser.parse_args()
    if options.records < STEP or options.records % STEP:
        parser.error(f"--records must be a multiple of {STEP}")
    if set(options.contenders) - {each.letter for each in CONTENDERS} or not options.contenders:
        parser.error("--contenders takes letters from a to e")
    return options


@contextmanager
def _broker(name: str, directory: Path) -> Iterator[ApacheKafka | EmbeddedBroker]:
    if name == "kafka":
        with apache_kafka(directory / "kafka") as kafka:
            yield kafka
    else:
        with embedded() as tansu:
            yield tansu


async def _measure(
    console: Console, broker: ApacheKafka | EmbeddedBroker, directory: Path, options: argparse.Namespace
) -> Measured:
    workload = Workload(records=options.records)
    scene = Scene(broker, workload, options.partitions, directory)
    measured = Measured(broker.name)
    chosen = [each for each in CONTENDERS if each.letter in options.contenders]
    try:
        took = await scene.load(options.backlog_rate)
        console.print(f"{broker.name}: {workload.records:,} records loaded in {took:.1f} s")
        # A broker that has just started is slower than later on; the quickest contender makes it read everything once.
        await _run(console, scene, CONTENDERS[1], Measured(broker.name), options.limit, "warm-up of the broker")
        for number in range(options.rounds):
            for contender in _turned(chosen, number):
                await _run(console, scene, contender, measured, options.limit, f"round {number + 1}")
        limit = measured.median(OURS.letter, lambda run: run.rate)
        if options.latency and limit:
            measured.latency = await latency(scene, workload, limit / 2, options.latency)
            console.print(said(measured.latency))
    except Failed as error:
        measured.failures.setdefault("latency", []).append(str(error))
    finally:
        await scene.stop()
    return measured


def _turned(contenders: Sequence[Contender], number: int) -> Sequence[Contender]:
    """Begin with another one each round, so that none always follows the same neighbour's work."""
    first = number % len(contenders)
    return [*contenders[first:], *contenders[:first]]


async def _run(
    console: Console, scene: Scene, contender: Contender, measured: Measured, limit_s: float, what: str
) -> None:
    try:
        run = await scene.run(contender, limit_s)
    except Failed as error:
        measured.failures.setdefault(contender.letter, []).append(str(error))
        console.print(f"{what}: ({contender.letter}) failed: {error}", style="yellow", markup=False)
        return
    measured.runs.setdefault(contender.letter, []).append(run)
    console.print(
        f"{what}: ({contender.letter}) {contender.name}: {run.rate:,.0f} records/s, CPU {run.cpu_per_100k:.2f} s/100k, "
        f"{run.records:,} records in {run.seconds:.1f} s{'' if run.complete else ', not through'}"
        f"{f', {run.repeated:,} outputs twice' if run.repeated else ''}; "
        f"others had {run.others_share:.0%} of the machine",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
