"""What we change of Faust, and why: batches, commits, state that can be fenced, publishing.

Faust stays for the app, the worker's life cycle, the consumer group with its assignor and
rebalance callbacks, agents and streams. Not used: its record at a time delivery (slow), its
commit by contiguous offsets (waits for a producer buffer), its tables (a plain restart loses
and doubles records, and the local store runs ahead of the changelog).

Clients use what is here too, without Faust, whose import takes a second: so only `app` and what
it alone imports may import it, and `app` is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from streams.engine.batch import Batch
from streams.engine.connection import Abilities, Connection, abilities
from streams.engine.errors import (
    AppendFailed,
    ChangelogFailed,
    EngineError,
    Fenced,
    Revoked,
    TooLarge,
    TopicReplaced,
)
from streams.engine.gaps import Gap, GapCause
from streams.engine.lanes import Reading
from streams.engine.offsets import Offsets
from streams.engine.producing import Appended
from streams.engine.publisher import Out, Publisher, partition_for
from streams.engine.stages import Stage, Table
from streams.engine.standing import Read, Standing, standing
from streams.engine.state import PartitionState, Recovery
from streams.engine.topic_ids import TopicIds
from streams.engine.tuning import DEVELOPMENT, Tuning

if TYPE_CHECKING:
    from streams.engine.app import GateApp, faust_app

__all__ = [
    "DEVELOPMENT",
    "Abilities",
    "AppendFailed",
    "Appended",
    "Batch",
    "ChangelogFailed",
    "Connection",
    "EngineError",
    "Fenced",
    "Gap",
    "GapCause",
    "GateApp",
    "Offsets",
    "Out",
    "PartitionState",
    "Publisher",
    "Read",
    "Reading",
    "Recovery",
    "Revoked",
    "Stage",
    "Standing",
    "Table",
    "TooLarge",
    "TopicIds",
    "TopicReplaced",
    "Tuning",
    "abilities",
    "faust_app",
    "partition_for",
    "standing",
]


def __getattr__(name: str) -> Any:
    """Import Faust with the first use of what needs it."""
    if name not in ("GateApp", "faust_app"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from streams.engine import app  # noqa: PLC0415  (that is the point)

    return getattr(app, name)
