"""A rolling restart of three workers under load: how long each partition stood still."""

import signal
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any

from streams.topics import SESSION_LOG, SESSION_STATES
from streams.wire import Wire
from tests.chaos.run import Say
from tests.chaos.scene import Scene


def roll(scene: Scene, say: Say) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Restart one worker after the other; returns what became of each, and the longest pause of every partition."""
    scene.feed.start()
    time.sleep(5)
    scene.progress.wait_for(scene.progress.ends(), 120)
    time.sleep(15)
    outcomes: list[dict[str, Any]] = []
    spans: dict[str, tuple[float, float]] = {}
    calm = (time.time() - 10, time.time())
    for place in scene.fleet.places[:3]:
        at, started = time.time(), time.monotonic()
        code = scene.fleet.end(place, signal.SIGTERM)
        scene.fleet.start(place)
        held = time.monotonic() - started
        stuck = scene.fleet.wait_ready(120)
        stuck += [f"{tp.topic}-{tp.partition}" for tp in scene.progress.wait_for(scene.progress.ends(), 120)]
        time.sleep(10)
        spans[f"worker {place.number}, {place.store}"] = at, time.time()
        recovery = time.monotonic() - started - 10
        outcomes.append(
            {
                "kind": "rolling_restart",
                "how": f"{place.store}, exit code {code}",
                "at": round(at, 3),
                "held_s": round(held, 2),
                "recovery_s": round(recovery, 2),
                "stuck": stuck,
                "crashes": [],
            }
        )
        say(f"worker {place.number} restarted: up to date after {recovery:.1f} s")
    scene.feed.pause()
    time.sleep(3)
    times = _times(scene)
    pauses = {
        name: {partition: round(longest_gap(found, *span), 2) for partition, found in sorted(times.items())}
        for name, span in {"no restart": calm, **spans}.items()
    }
    scene.feed.resume()
    return outcomes, pauses


def longest_gap(times: list[float], start: float, stop: float) -> float:
    """Return the longest stretch without any of these times between start and stop, in seconds."""
    inside = [start, *(at for at in sorted(times) if start < at < stop), stop]
    return max(later - earlier for earlier, later in pairwise(inside))


def _times(scene: Scene) -> dict[str, list[float]]:
    """Return when something was ingested from each input partition, and when each log partition's fold was stored."""
    wire = Wire.of(scene.pipeline.settings)
    times: dict[str, list[float]] = defaultdict(list)
    for record in scene.pipeline.read(SESSION_LOG):
        source = wire.read_log_record(record.value, record.offset, record.timestamp).source
        if source is not None:
            times[f"{source.topic}-{source.partition}"].append(record.timestamp / 1000)
    for record in scene.pipeline.read(SESSION_STATES):
        if record.key.startswith(b"p/"):
            times[f"{scene.pipeline.topics[SESSION_LOG].name}-{record.partition}"].append(record.timestamp / 1000)
    return times
