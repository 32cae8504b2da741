"""The wire: schemas, core records and bytes, and the only user of fastavro."""

from streams.wire.formats import Format
from streams.wire.inputs import ScoreInput, TraceInput
from streams.wire.schema_ids import FileSchemaIds, RegistrySchemaIds, SchemaIds
from streams.wire.states import decode_kept_trace, decode_state, encode_kept_trace, encode_state, kept_trace_times
from streams.wire.wire import Wire

__all__ = [
    "FileSchemaIds",
    "Format",
    "RegistrySchemaIds",
    "SchemaIds",
    "ScoreInput",
    "TraceInput",
    "Wire",
    "decode_kept_trace",
    "decode_state",
    "encode_kept_trace",
    "encode_state",
    "kept_trace_times",
]
