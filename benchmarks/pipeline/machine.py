"""What was measured on: the machine, the versions, the commit."""

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("aiokafka", "confluent-kafka", "faust-streaming", "mode-streaming", "quixstreams", "orjson", "fastavro")
ROOT = Path(__file__).parents[2]


def facts() -> dict[str, Any]:
    """Return what a reader needs to know to compare numbers."""
    return {
        "commit": _said("git", "rev-parse", "--short", "HEAD"),
        "changed_files": len(
            _said("git", "status", "--porcelain", "--", "streams", "schemas", "benchmarks").splitlines()
        ),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "java": _java(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text("utf-8"))
    except OSError:
        found = None
    return found[1] if found else platform.processor()


def _java() -> str:
    if shutil.which("java") is None:
        return "none"
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S607
    return said.partition("\n")[0]


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603
    return done.stdout.strip()
