"""python -m tests.chaos --seed N: a seeded run of faults on three brokers, its check and its result file."""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos import run
from tests.chaos.faults import KINDS, SHORT, schedule
from tests.chaos.rolling import roll
from tests.chaos.scene import scene

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "chaos" / "results"


def main() -> int:
    args = _arguments()
    directory = Path(args.directory or tempfile.mkdtemp(prefix="tgate-chaos-")) / f"seed-{args.seed}"
    say(f"seed {args.seed}, commit {args.commit}, in {directory}")
    if args.rolling:
        name, result = f"rolling-{args.seed}", _rolling(args, directory)
    else:
        name, result = f"{args.seed}", _chaos(args, directory)
    good = run.is_good(result)
    path = Path(args.results) / f"{name}-{args.commit}.json"
    run.write(result, path)
    _report(result)
    if good and not args.keep:
        shutil.rmtree(directory, ignore_errors=True)
    say(f"{'passed' if good else 'FAILED'}; result in {path}" + ("" if good else f"; logs and data in {directory}"))
    return 0 if good else 1


def _chaos(args: argparse.Namespace, directory: Path) -> dict[str, Any]:
    if args.only:
        faults = [KINDS[name] for name in args.only.split(",")]
    elif args.short:
        faults = list(SHORT)
        random.Random(args.seed).shuffle(faults)
    else:
        faults = schedule(random.Random(args.seed), args.faults, frozenset(args.without.split(",")))
    started = time.monotonic()
    with scene(args.seed, directory, args.rate) as here:
        outcomes = run.go_through(here, faults, say)
        say("the input ends; waiting for rest")
        unread = run.come_to_rest(here)
        say("checking")
        checked = run.check(here)
        return run.result_of(here, outcomes, checked, unread, **_given(args), seconds=round(time.monotonic() - started))


def _rolling(args: argparse.Namespace, directory: Path) -> dict[str, Any]:
    # The stored positions say when each partition's fold moved: all of them are needed.
    with scene(args.seed, directory, args.rate, compacts=False) as here:
        outcomes, pauses = roll(here, say)
        unread = run.come_to_rest(here)
        checked = run.check(here)
        return {**run.result_of(here, outcomes, checked, unread, **_given(args)), "pauses": pauses}


def _given(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "seed": args.seed,
        "commit": args.commit,
        "date": args.date,
        "left_out": [name for name in args.without.split(",") if name],
        "rate": args.rate,
    }


def _report(result: dict[str, Any]) -> None:
    for finding in result["findings"]:
        say(
            f"{finding['name']}: {finding['expected']} expected, lost {finding['lost']}, "
            f"spurious {finding['spurious']}, duplicated {finding['duplicated']}"
        )
        for example in finding["examples"]:
            say(f"    {example}")
    for what in ("records", "log_records", "ignored_repeats", "excluded_by_retention", "gaps", "health", "crashes"):
        say(f"{what}: {result[what]}")
    say(f"lost {result['lost']}, spurious {result['spurious']}, duplicated {result['duplicated']}")


def say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)  # noqa: T201  (a command of its own)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides faults, their order and the agents' stories")
    parser.add_argument("--faults", type=int, default=40, help="how many (40)")
    parser.add_argument("--short", action="store_true", help="a handful of faults, for CI")
    parser.add_argument("--rolling", action="store_true", help="instead: three workers restarted in turn under load")
    parser.add_argument("--only", default="", help=f"exactly these, comma-separated, of: {', '.join(KINDS)}")
    parser.add_argument("--without", default="", help="kinds to leave out, comma-separated")
    parser.add_argument("--rate", type=float, default=60.0, help="input records a second (60)")
    parser.add_argument("--commit", default=_commit(), help="what the result file names")
    parser.add_argument("--date", default=f"{datetime.now(UTC):%Y-%m-%d}", help="what the result file says")
    parser.add_argument("--directory", default="", help="where cluster and logs live (a temporary directory)")
    parser.add_argument("--results", default=str(RESULTS), help="where the result file goes")
    parser.add_argument("--keep", action="store_true", help="keep cluster and logs of a good run too")
    return parser.parse_args()


def _commit() -> str:
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
