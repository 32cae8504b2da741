"""The cases with exact answers that hold for any implementation of the rules."""

import json
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent.parent / "vectors"


def cases(name: str) -> Any:
    """Return every case of one vector file: a list, or lists by what they are about."""
    return json.loads((_HERE / f"{name}.json").read_text())
