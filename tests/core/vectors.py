"""The cases with exact answers that hold for any implementation of the rules."""

import json
from pathlib import Path

_HERE = Path(__file__).parent.parent / "vectors"


def cases(name: str) -> list[dict]:
    """Return every case of one vector file."""
    return json.loads((_HERE / f"{name}.json").read_text())
