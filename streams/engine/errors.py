"""The errors of the layer between Faust and the stages, as one tree.

EngineError
├── Revoked           the partition is not this worker's any more: stop working on it
│   └── Fenced        the same, found out by a refused write
├── TopicReplaced     the topic was deleted and made again: what was read may be of either
├── AppendFailed      records may or may not be in the topic: read again, append again
├── ChangelogFailed   the same for a state write: the partition is built again
├── LogLost           a log ends before where its state stands: the worker ends
├── StoreFailed       the local store refused what the changelog holds: the partition is built again
└── TooLarge          one record is larger than a request may be
"""

from streams.errors import TgateError


class EngineError(TgateError):
    """The root of what the engine raises on purpose."""


class Revoked(EngineError):
    """The partition is not this worker's any more."""


class Fenced(Revoked):
    """A newer owner of the partition exists; the broker refused a write of ours."""


class TopicReplaced(EngineError):
    """The topic has been made again since reading began; it is read anew, as another topic."""


class AppendFailed(EngineError):
    """The acks of an append did not come; nothing later was sent by that producer."""


class ChangelogFailed(EngineError):
    """A state write has no known outcome; the local store was not changed."""


class LogLost(EngineError):
    """A log ends before the position that its state stands for; new records would pass for old ones."""


class StoreFailed(EngineError):
    """The local store did not take a write that its changelog holds; on a full disk, for one."""


class TooLarge(EngineError):
    """A record is larger than the largest request; nothing was sent."""
