"""Parquet files of traces and scores, as the JSON lines that their rows would be. Needs the extra `parquet`."""

import importlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import orjson

from streams.errors import PartMissing, SchemaMismatch
from streams.lines import Line

MAGIC: Final = b"PAR1"
ROWS: Final = 1_000
TRACE_ONLY: Final = frozenset(
    {"started_at", "ended_at", "status", "spans", "input", "output", "tags", "turn_index", "ends_turn"}
)
"""A file with none of these columns holds scores alone, whatever is missing in a row."""


def is_parquet(path: Path) -> bool:
    """Whether a file begins as a Parquet file does; of a pipe, which can be read only once, nobody asks.

    Raises:
        OSError: it cannot be read.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_rows(path: Path) -> Iterator[list[Line]]:
    """Read a file's rows; yields some of them at a time, numbered from 1, each with about how far the file was read.

    Columns are named as the fields of the JSON format; times may be timestamps, spans and metadata lists, structs or
    maps. What is null in a row is absent from it.

    Raises:
        PartMissing: pyarrow is not installed.
        SchemaMismatch: it is no Parquet file, or holds what no record has.
        OSError: it cannot be read.
    """
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise PartMissing(
            f"reading {path.name} as Parquet needs {error.name}: pip install 'trajectory-gate[parquet]'"
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            yield from _lines(file, path.stat().st_size)
    except arrow.ArrowException as error:
        raise SchemaMismatch(f"no Parquet file that can be read: {error}") from None


def _lines(file: Any, size: int) -> Iterator[list[Line]]:
    names = set(file.schema_arrow.names)
    scores_alone = "value" in names and TRACE_ONLY.isdisjoint(names)
    number, total = 0, max(1, file.metadata.num_rows)
    for batch in file.iter_batches(ROWS):
        rows = batch.to_pylist(maps_as_pydicts="strict")
        read = size * (number + len(rows)) // total
        yield [Line(number + at, _text(row, scores_alone=scores_alone), read) for at, row in enumerate(rows, 1)]
        number += len(rows)


def _text(row: dict[str, Any], *, scores_alone: bool) -> bytes:
    held = {name: value for name, value in row.items() if value is not None}
    if scores_alone:
        # A score without its value would otherwise pass for a trace.
        held.setdefault("value", None)
    try:
        return orjson.dumps(held, default=_plain, option=orjson.OPT_NAIVE_UTC)
    except TypeError as error:
        raise SchemaMismatch(f"a column holds what JSON has no form for: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    raise TypeError(type(value).__name__)
