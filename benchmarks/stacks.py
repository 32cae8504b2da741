"""What part of the worker a sampled stack belongs to."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

PARTS: Final = (
    ("decide: the core's step", ("streams/core/session.py",)),
    ("fold: place, repeats, waits", ("streams/core/log.py", "streams/core/candidates.py", "streams/core/breaker.py")),
    ("read a trace", ("read_trace (",)),
    ("read a score", ("read_score (",)),
    ("read a record of our own logs", ("read_log_record (", "read_candidate (")),
    ("write a record of the session log", ("write_internal (",)),
    ("write an output", ("streams/agents/outbox.py",)),
    ("encode states", ("encode_state (",)),
    ("publish, write state, commit: client library", ("aiokafka/producer", "streams/engine/publisher.py",
                                                     "streams/engine/producing.py", "streams/engine/changelog.py",
                                                     "streams/engine/state.py", "commit_offsets")),
    ("fetch: client library and lanes", ("aiokafka/consumer", "streams/engine/fetching.py", "streams/engine/lanes.py")),
    ("connections", ("aiokafka/conn.py", "aiokafka/client.py", "streams/engine/topic_ids.py")),
    ("the stages themselves", ("streams/agents/",)),
    ("Faust", ("faust/", "mode/")),
)  # fmt: skip
"""What a stack belongs to: the first part of which it holds a word."""
REST: Final = "event loop, rest"


def parts(stacks: Iterable[str]) -> Counter[str]:
    """Return how many samples belong to each part; *stacks* are py-spy's raw lines: frames, then a count."""
    found: Counter[str] = Counter()
    for line in stacks:
        stack, count = line.rsplit(" ", 1)
        # The lowest frames are the same everywhere: Faust's worker, which runs the loop.
        frames = stack.split(";")
        start = max((place for place, frame in enumerate(frames) if "base_events.py" in frame), default=-1) + 1
        above = ";".join(frames[start:])
        part = next((name for name, words in PARTS if any(word in above for word in words)), REST)
        found[part] += int(count)
    return found
