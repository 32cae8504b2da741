"""The errors this project raises, as one tree.

TgateError
├── BrokerUnavailable    a broker cannot be started, or does not answer
├── BadSettings          a setting is unknown or not allowed
├── BadRun               an eval run or a monitor is asked for that cannot be
├── TopicsWrong          a topic is missing, or not as the stages need it
├── InvalidRecord        bytes that are not the record they should be: a dead letter
│   ├── UnknownFormat    neither Avro, Confluent framing nor JSON
│   ├── UnknownSchema    written with a schema that nobody here knows
│   ├── SchemaMismatch   not what the schema says: truncated, malformed, or another record
│   ├── InvalidValue     a field is missing or has a value that is not allowed
│   └── TooLarge         longer than a record may be
├── RegistryUnavailable  the schema registry does not answer: try again
├── SchemaNotRegistered  there is no schema id to frame our own records with
├── UnreadableState      a stored state is not one
│   └── NewerState       a state or a record of our own logs was written by a newer version: stop
├── CoreFailure          the rules raised on a valid record: a bug, and a dead letter
├── EndpointFailed       a judge or an embedder does not answer, or not with what can be used: a FAILED score
├── RecordingMissing     the demo's sessions are not in this installation
├── PartMissing          something is asked for that needs an extra which is not installed
└── WorkerEnded          a worker that was started for something ended before it was done

Every message says what was tried, what was refused and what to do about it.
"""

import reprlib
from typing import Final

_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class TgateError(Exception):
    """The root: catch this for anything that the project raises on purpose."""


class BrokerUnavailable(TgateError):
    """A broker cannot be started, ended early or does not answer."""


class BadSettings(TgateError):
    """A setting is unknown or has a value that is not allowed; nothing has been started."""


class BadRun(TgateError):
    """An eval run or a monitor is asked for that cannot be: nothing has been created."""


class TopicsWrong(TgateError):
    """A topic is missing, or not as the stages need it; nothing has been started."""


class InvalidRecord(TgateError):
    """Bytes that cannot be taken as the record they should be; the class name says in a dead letter why."""


class UnknownFormat(InvalidRecord):
    """The first byte belongs to none of the formats, or there is no value at all."""


class UnknownSchema(InvalidRecord):
    """The fingerprint or schema id belongs to no known schema."""


class SchemaMismatch(InvalidRecord):
    """The bytes are not what their schema says, or hold another record."""


class InvalidValue(InvalidRecord):
    """A field is missing or has a value that is not allowed.

    field: where it is, for example `spans[2].kind`.
    value: what stands there; none when it is missing.
    allowed: what may stand there.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        found = "missing" if value is None else _SHORT.repr(value)
        super().__init__(f"{field or 'the record'} is {found}, expected {allowed}")

    def inside(self, name: str) -> "InvalidValue":
        """Return the same error as seen from one field further out."""
        between = "." if self.field and not self.field.startswith("[") else ""
        return InvalidValue(f"{name}{between}{self.field}", self.value, self.allowed)


class TooLarge(InvalidRecord):
    """A record is longer than the setting allows; nothing was sent."""


class RegistryUnavailable(TgateError):
    """The schema registry does not answer, or refuses us; says nothing about the record."""


class SchemaNotRegistered(TgateError):
    """Records of ours cannot be framed: the registry or file has no id for their schema."""


class UnreadableState(TgateError):
    """A stored state cannot be read; the worker stops rather than forget."""


class NewerState(UnreadableState):
    """A stored state, or a record of our own logs, was written by a newer version."""


class CoreFailure(TgateError):
    """The rules raised on a valid record, which is a bug: the record counts as absent and goes to the dead letters."""


class EndpointFailed(TgateError):
    """A judge or an embedder does not answer, refuses, or answers what cannot be used: the score is FAILED.

    status: of its HTTP answer, where that is what went wrong.
    """

    def __init__(self, reason: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(reason)


class RecordingMissing(TgateError):
    """The demo's recorded sessions are not part of this installation."""


class PartMissing(TgateError):
    """Something is asked for that needs an extra which is not installed."""


class WorkerEnded(TgateError):
    """A worker that was started for something ended before it was done."""
