"""One seeded run: faults under steady input, then rest, then the check; its result is a JSON-ready dict."""

import json
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.chaos.check import Check, Checked
from tests.chaos.faults import Fault
from tests.chaos.scene import Scene

PATIENCE_S = 120.0
"""How long recovery may take before all workers are restarted and the fault counts as one that was not survived."""
QUIET_S = 10.0
"""Longer than every wait, so that nothing is left to fire."""

Say = Callable[[str], None]


def go_through(scene: Scene, faults: list[Fault], say: Say) -> list[dict[str, Any]]:
    """Start the input and inflict the faults one after the other; returns what became of each."""
    scene.feed.start()
    time.sleep(3)
    stuck = scene.fleet.wait_ready(PATIENCE_S) or scene.progress.wait_for(scene.progress.ends(), PATIENCE_S)
    assert not stuck, f"nothing moves before the first fault: {stuck}"
    return [_inflict(scene, fault, f"{number}/{len(faults)}", say) for number, fault in enumerate(faults, 1)]


def _inflict(scene: Scene, fault: Fault, number: str, say: Say) -> dict[str, Any]:
    time.sleep(scene.rng.uniform(1, 4))
    crashes = len(scene.fleet.crashes)
    at, started = time.time(), time.monotonic()
    said = fault(scene)
    held = time.monotonic() - started
    stuck = scene.fleet.wait_ready(PATIENCE_S)
    stuck += [f"{tp.topic}-{tp.partition}" for tp in scene.progress.wait_for(scene.progress.ends(), PATIENCE_S)]
    recovery = time.monotonic() - started
    if stuck:
        _restart_all(scene)
    outcome = {
        "kind": fault.__name__,
        "how": said,
        "at": round(at, 3),
        "held_s": round(held, 2),
        "recovery_s": round(recovery, 2),
        "stuck": stuck,
        "crashes": [asdict(crash) for crash in scene.fleet.crashes[crashes:]],
    }
    more = f", STUCK: {stuck}" if stuck else ""
    more += f", crashed: {[crash['log'] for crash in outcome['crashes']]}" if outcome["crashes"] else ""
    say(
        f"{number} {fault.__name__} ({said}): held {held:.1f} s, all partitions up to date after {recovery:.1f} s{more}"
    )
    return outcome


def _restart_all(scene: Scene) -> None:
    places = scene.fleet.running()
    for place in places:
        scene.fleet.end(place, signal.SIGKILL)
    for place in places:
        scene.fleet.start(place)
    scene.fleet.wait_ready(PATIENCE_S)
    scene.progress.wait_for(scene.progress.ends(), PATIENCE_S)


def come_to_rest(scene: Scene) -> list[str]:
    """End the input, let everything be read and decided, and stop the workers; returns what was left undone."""
    scene.feed.stop()
    left = scene.progress.wait_for_rest(QUIET_S, 240)
    for _ in range(3):
        for place in scene.fleet.running():
            scene.fleet.end(place, signal.SIGTERM)
        if not (left := left or scene.progress.behind(scene.progress.ends())):
            return []
        # A tick that was appended last thing, or a worker that did not come to its end.
        scene.fleet.start(scene.fleet.places[0])
        left = scene.progress.wait_for_rest(QUIET_S, 120)
    return [f"{tp.topic}-{tp.partition}" for tp in left]


def check(scene: Scene) -> Checked:
    """Compare everything; the workers have stopped."""
    return Check(scene.pipeline, scene.feed.published).run()


def result_of(
    scene: Scene, outcomes: list[dict[str, Any]], checked: Checked, unread: list[str], **given: Any
) -> dict[str, Any]:
    """Return the run as JSON holds it."""
    return {
        **given,
        "broker": f"{scene.cluster.name}, 3 brokers, replication 3, min.insync.replicas 2",
        "stores": [place.store for place in scene.fleet.places],
        "records": checked.records,
        "log_records": checked.log_records,
        "lost": checked.total("lost"),
        "spurious": checked.total("spurious"),
        "duplicated": checked.total("duplicated"),
        "ignored_repeats": checked.ignored_repeats,
        "excluded_by_retention": checked.excluded,
        "gaps": checked.gaps,
        "health": dict(checked.health),
        "unread": unread,
        "crashes": [asdict(crash) for crash in scene.fleet.crashes],
        "faults": outcomes,
        "findings": [asdict(finding) for finding in checked.findings],
    }


def is_good(result: dict[str, Any]) -> bool:
    """Whether nothing was lost, nothing was made up, and every fault was survived without help."""
    return not (result["lost"] or result["spurious"] or result["unread"] or any(f["stuck"] for f in result["faults"]))


def write(result: dict[str, Any], path: Path) -> None:
    """Write a result as a file of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
