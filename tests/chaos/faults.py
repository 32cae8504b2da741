"""Every kind of fault: what is done to a running pipeline, and what is put right again."""

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Final

from tests.chaos import topics
from tests.chaos.fleet import Place
from tests.chaos.scene import SESSION_TIMEOUT_S, Scene

Fault = Callable[[Scene], str]
"""Does it all, waits included, and returns a word on how it was done."""


def worker_kill(scene: Scene) -> str:
    """kill -9 of one worker."""
    place = _one(scene)
    scene.fleet.end(place, signal.SIGKILL)
    time.sleep(scene.rng.uniform(0, 3))
    scene.fleet.start(place)
    return place.store


def workers_kill(scene: Scene) -> str:
    """kill -9 of all workers at once."""
    places = scene.fleet.running()
    for place in places:
        scene.fleet.end(place, signal.SIGKILL)
    for place in places:
        scene.fleet.start(place)
    return f"{len(places)} workers"


def worker_term(scene: Scene) -> str:
    """SIGTERM to one worker, which drains and leaves."""
    place = _one(scene)
    code = scene.fleet.end(place, signal.SIGTERM)
    scene.fleet.start(place)
    return f"{place.store}, exit code {code}"


def worker_pause(scene: Scene) -> str:
    """SIGSTOP for longer than the session timeout, then SIGCONT: a worker that does not know it was replaced."""
    place = _one(scene)
    scene.fleet.send(place, signal.SIGSTOP)
    held = SESSION_TIMEOUT_S + scene.rng.uniform(2, 8)
    time.sleep(held)
    scene.fleet.send(place, signal.SIGCONT)
    return f"{place.store}, {held:.1f} s"


def workers_pause(scene: Scene) -> str:
    """SIGSTOP of all workers for longer than the session timeout: all wake up at once, and none is a member any more."""
    places = scene.fleet.running()
    for place in places:
        scene.fleet.send(place, signal.SIGSTOP)
    held = SESSION_TIMEOUT_S + scene.rng.uniform(2, 8)
    time.sleep(held)
    for place in places:
        scene.fleet.send(place, signal.SIGCONT)
    return f"{len(places)} workers, {held:.1f} s"


def worker_join(scene: Scene) -> str:
    """One more worker; it leaves first when it is there."""
    place = scene.fleet.places[-1]
    if place.process is not None:
        scene.fleet.end(place, signal.SIGTERM)
    scene.fleet.start(place)
    return f"{len(scene.fleet.running())} workers"


def worker_leave(scene: Scene) -> str:
    """One worker less for a while."""
    joined = scene.fleet.places[-1]
    place = joined if joined.process is not None else _one(scene)
    scene.fleet.end(place, signal.SIGTERM)
    time.sleep(scene.rng.uniform(3, 8))
    left = len(scene.fleet.running())
    if place is not joined:
        scene.fleet.start(place)
    return f"{left} workers left"


def rules_change(scene: Scene) -> str:
    """One worker starts again with other rules: its partitions switch, and switch back with the next owner."""
    place = _one(scene)
    scene.fleet.end(place, signal.SIGTERM)
    window = scene.rng.randint(3, 6)
    scene.fleet.start(place, gate_window=window)
    return f"gate_window {window}"


def broker_restart(scene: Scene) -> str:
    """A broker is shut down in good order and starts again."""
    number = scene.rng.randint(1, 3)
    scene.cluster.stop(number)
    scene.cluster.start(number)
    return f"broker {number}"


def broker_kill(scene: Scene) -> str:
    """kill -9 of a broker, which starts again later."""
    number = scene.rng.randint(1, 3)
    scene.cluster.kill(number)
    # From a restart before anyone has noticed to well after new leaders have been elected.
    time.sleep(scene.rng.choice((0, 5, 12, 25)))
    scene.cluster.start(number)
    return f"broker {number}"


def broker_pause(scene: Scene) -> str:
    """SIGSTOP of a broker until others lead in its place, then SIGCONT: what it was sent before may still be on its way."""
    number = scene.rng.randint(1, 3)
    os.kill(scene.cluster.pid(number), signal.SIGSTOP)
    held = scene.rng.uniform(12, 20)
    time.sleep(held)
    os.kill(scene.cluster.pid(number), signal.SIGCONT)
    return f"broker {number}, {held:.1f} s"


def brokers_kill(scene: Scene) -> str:
    """kill -9 of two brokers: too few replicas are left to append anything until they are back."""
    numbers = scene.rng.sample((1, 2, 3), 2)
    for number in numbers:
        scene.cluster.kill(number)
    time.sleep(scene.rng.choice((5, 20)))
    for number in numbers:
        scene.cluster.start(number)
    return f"brokers {numbers[0]} and {numbers[1]}"


def broker_and_worker_kill(scene: Scene) -> str:
    """kill -9 of a broker and of a worker while it is away."""
    number, place = scene.rng.randint(1, 3), _one(scene)
    scene.cluster.kill(number)
    time.sleep(scene.rng.uniform(0, 2))
    scene.fleet.end(place, signal.SIGKILL)
    scene.fleet.start(place)
    time.sleep(scene.rng.uniform(0, 3))
    scene.cluster.start(number)
    return f"broker {number}, {place.store}"


def disk_full(scene: Scene) -> str:
    """The disk under a state directory takes no more, and later does again."""
    place = scene.fleet.places[-2]
    how = scene.fleet.limit_disk(place, full=True)
    time.sleep(scene.rng.uniform(8, 15))
    scene.fleet.limit_disk(place, full=False)
    return how


def state_wiped(scene: Scene) -> str:
    """A worker dies and starts with an empty state directory; another one dies and finds its own again."""
    wiped, kept = (place for place in scene.fleet.places[:3] if place.store == "rocksdb")
    for place in (wiped, kept):
        scene.fleet.end(place, signal.SIGKILL)
    scene.fleet.wipe(wiped)
    for place in (wiped, kept):
        scene.fleet.start(place)
    return "rocksdb"


def long_stop(scene: Scene) -> str:
    """All workers are away for longer than a session lives, most of it without input."""
    places = scene.fleet.running()
    for place in places:
        scene.fleet.end(place, scene.rng.choice((signal.SIGKILL, signal.SIGTERM)))
    time.sleep(2)
    scene.feed.pause()
    held = scene.ttl_s + 3
    time.sleep(held)
    scene.feed.resume()
    for place in places:
        scene.fleet.start(place)
    return f"{held:.0f} s"


def idle(scene: Scene) -> str:
    """No input for longer than the session timeout and longer than a session lives."""
    scene.feed.pause()
    held = max(2 * SESSION_TIMEOUT_S, scene.ttl_s) + 3
    time.sleep(held)
    scene.feed.resume()
    return f"{held:.0f} s"


def compaction(scene: Scene) -> str:
    """The changelogs are compacted past what a stopped worker's store has applied last."""
    place = next(place for place in scene.fleet.places[:3] if place.store == "rocksdb")
    scene.fleet.end(place, signal.SIGKILL)
    said = topics.wait_for_compaction(scene.pipeline, patience_s=90)
    scene.fleet.start(place)
    return said


def input_recreated(scene: Scene) -> str:
    """An input topic is deleted and made again, once everything in it has been ingested."""
    role = scene.rng.choice(topics.INPUTS)
    scene.feed.pause()
    ends = {tp: end for tp, end in scene.progress.ends().items() if tp in scene.progress.inputs}
    behind = scene.progress.wait_for(ends, 120)
    topics.recreate(scene.pipeline, role)
    generations = scene.feed.published.generations
    generations[role] = generations.get(role, 0) + 1
    scene.feed.resume()
    return role + (", not all of it ingested" if behind else "")


def retention(scene: Scene) -> str:
    """Retention passes over records of an input partition while every worker is stopped."""
    places = scene.fleet.running()
    for place in places:
        scene.fleet.end(place, signal.SIGKILL)
    time.sleep(5)
    role = scene.rng.choice(topics.INPUTS)
    said = topics.delete_records(scene.pipeline, role, scene.rng)
    for place in places:
        scene.fleet.start(place)
    return said


CHEAP: Final[tuple[Fault, ...]] = (
    worker_kill,
    worker_term,
    worker_pause,
    workers_pause,
    worker_join,
    worker_leave,
    rules_change,
    broker_restart,
    broker_kill,
    broker_pause,
    brokers_kill,
    broker_and_worker_kill,
    workers_kill,
    state_wiped,
)
"""Done again and again."""
LONG: Final[tuple[Fault, ...]] = (disk_full, long_stop, idle, compaction, input_recreated, retention)
"""Done once or twice a run."""
SHORT: Final[tuple[Fault, ...]] = (worker_kill, worker_term, worker_pause, broker_kill, state_wiped)
KINDS: Final = {fault.__name__: fault for fault in (*CHEAP, *LONG)}


def schedule(rng: random.Random, count: int, left_out: frozenset[str]) -> list[Fault]:
    """Return so many faults in an order that the seed decides; every long one is among the first 40."""
    long = [fault for fault in LONG if fault.__name__ not in left_out]
    cheap = [fault for fault in CHEAP if fault.__name__ not in left_out]
    rng.shuffle(long)
    chosen = long[: max(1, count // 6)] if long else []
    while len(chosen) < count:
        rng.shuffle(cheap)
        chosen += cheap[: count - len(chosen)]
    rng.shuffle(chosen)
    return chosen


def _one(scene: Scene) -> Place:
    return scene.rng.choice(scene.fleet.running())
