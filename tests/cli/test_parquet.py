"""Parquet files of traces and scores are read as the JSON lines that their rows would be."""

import gzip
import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from streams.cli import cli
from streams.parquet import is_parquet, read_rows

RECORDING = Path(__file__).parents[2] / "examples" / "recording" / "sessions.jsonl.gz"
ONLY = ("-s", "tier1_metrics=task_completion", "-s", "circuit_breaker_max_notices=0")


def recorded(count: int) -> list[dict[str, Any]]:
    with gzip.open(RECORDING, "rt") as file:
        return [json.loads(line) for line in islice(file, count)]


def as_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as a table; times as timestamps, metadata as text, spans as lists of structs."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    held = []
    for row in rows:
        made: dict[str, Any] = {name: row.get(name) for name in names}
        for name in ("started_at", "ended_at", "created_at"):
            if made.get(name) is not None:
                made[name] = datetime.fromtimestamp(made[name] / 1000, UTC)
        for name in ("metadata", "input", "output"):
            if made.get(name) is not None:
                made[name] = json.dumps(made[name])
        for span in made.get("spans") or ():
            for name in ("metadata", "input", "output"):
                span[name] = json.dumps(span.get(name) or {})
        held.append(made)
    pq.write_table(pa.Table.from_pylist(held), path, row_group_size=500)
    return path


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def notices(*files: Path) -> list[Any]:
    result = run("replay", *files, *ONLY, "--json")
    assert result.exit_code == 0, result.output
    assert "refused" not in result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_replay_of_parquet_is_that_of_the_lines(tmp_path: Path) -> None:
    rows = recorded(2400)
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = notices(lines)
    assert len(expected) > 20
    traces = as_parquet(tmp_path / "traces.parquet", [row for row in rows if "score_id" not in row])
    scores = as_parquet(tmp_path / "scores.parquet", [row for row in rows if "score_id" in row])
    both = as_parquet(tmp_path / "both.parquet", recorded(2400))
    assert notices(traces, scores) == expected
    assert notices(both) == expected


def test_a_score_without_value_does_not_pass_for_a_trace(tmp_path: Path) -> None:
    rows = [
        {"session_id": "s", "trace_id": f"t{at}", "name": "m", "value": value} for at, value in enumerate((0.5, None))
    ]
    result = run("replay", as_parquet(tmp_path / "scores.parquet", rows), "--json")
    assert "scores.parquet:2" in result.stderr
    assert "value is missing" in result.stderr


def test_what_columns_may_hold(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    columns = {
        "session_id": pa.array(["s"]),
        "value": pa.array([Decimal("0.25")]),
        "name": pa.array([b"m"]),
        "created_at": pa.array([datetime(2026, 1, 2, 3, 4, 5)], pa.timestamp("us")),  # noqa: DTZ001 - as many files have it
        "metadata": pa.array([[("threshold", 0.5)]], pa.map_(pa.string(), pa.float64())),
        "trace_id": pa.array([None], pa.string()),
    }
    pq.write_table(pa.table(columns), file)
    assert is_parquet(file)
    ((line,),) = read_rows(file)
    assert json.loads(line.text) == {
        "session_id": "s",
        "value": "0.25",
        "name": "m",
        "created_at": "2026-01-02T03:04:05+00:00",
        "metadata": {"threshold": 0.5},
    }
    assert (line.number, line.read) == (1, file.stat().st_size)


def test_a_damaged_file_and_a_column_without_json_form_say_so(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 and then nothing")
    result = run("replay", damaged)
    assert result.exit_code == 1
    assert "damaged.parquet: cannot be read on: no Parquet file" in result.stderr
    strange = tmp_path / "strange.parquet"
    pq.write_table(pa.table({"session_id": pa.array([10**9], pa.duration("s"))}), strange)
    said = run("replay", strange).stderr
    assert "a column holds what JSON has no form for" in said
    assert "timedelta" in said


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = as_parquet(tmp_path / "traces.parquet", recorded(3))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("calibrate", file, *ONLY)
    assert result.exit_code == 1
    assert "pip install 'trajectory-gate[parquet]'" in result.stderr
