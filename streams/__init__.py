"""trajectory-gate: watches the score series of every AI agent session, live, on Kafka."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Give Faust's own command line its app: `faust -A streams worker` looks for `streams.app`."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Faust asks twice, and the import has by then put the module under this name.
    made = globals()["app"] = import_module("streams.app").app
    return made
