"""Which sessions truly failed: from a JSON or CSV file, or from captured eval cases as the next best thing."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import orjson

from streams.errors import BadSettings

TRUE: Final = frozenset({"true", "1", "yes", "failed"})
FALSE: Final = frozenset({"false", "0", "no", "ok", ""})


def read_labels(path: Path) -> dict[str, bool]:
    """Read whether sessions failed; a session that is not named has no label, but see below.

    JSON object: session -> failed. JSON list: of objects with session_id and failed. CSV: columns session_id and
    failed. A JSON list of session ids names the failed ones: `complete` then labels all others as good.

    Raises:
        BadSettings: the file cannot be read, or is none of these.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadSettings(f"labels {path}: {error.strerror}") from None
    try:
        return _of_json(path, orjson.loads(text))
    except orjson.JSONDecodeError:
        return _of_csv(path, text)


def names_only_failed(path: Path) -> bool:
    """Whether a file lists failed sessions and nothing else: every other session is then good."""
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return isinstance(found, list) and all(isinstance(item, str) for item in found)


def complete(failed: dict[str, bool], sessions: Iterable[str]) -> dict[str, bool]:
    """Return labels for all sessions: those not named did not fail."""
    return {name: failed.get(name, False) for name in sessions}


def of_cases(path: Path) -> dict[str, bool]:
    """Read the sessions of captured eval cases as failed: JSON lines, as `tgate cases list --json` prints them.

    Raises:
        BadSettings: the file cannot be read, or holds something else.
    """
    try:
        rows = [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        return {str(row["session_id"]): True for row in rows}
    except OSError as error:
        raise BadSettings(f"cases {path}: {error.strerror}") from None
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise BadSettings(f"cases {path}: one eval case as JSON a line is needed, with its session_id") from None


def _of_json(path: Path, found: Any) -> dict[str, bool]:
    if isinstance(found, dict):
        return {str(name): _failed(path, value) for name, value in found.items()}
    if isinstance(found, list) and all(isinstance(item, str) for item in found):
        return dict.fromkeys(found, True)
    if isinstance(found, list) and all(isinstance(item, dict) and "session_id" in item for item in found):
        return {str(item["session_id"]): _failed(path, item.get("failed")) for item in found}
    raise _wrong(path)


def _of_csv(path: Path, text: bytes) -> dict[str, bool]:
    try:
        rows = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"))))
        return {row["session_id"]: _failed(path, row["failed"]) for row in rows}
    except (UnicodeDecodeError, KeyError, csv.Error):
        raise _wrong(path) from None


def _failed(path: Path, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = str(value).strip().lower()
    if value is None or said not in TRUE | FALSE:
        raise BadSettings(f"labels {path}: {value!r} does not say whether a session failed: true or false is needed")
    return said in TRUE


def _wrong(path: Path) -> BadSettings:
    return BadSettings(
        f"labels {path}: needed is a JSON object {{session: failed}}, a JSON list of failed sessions or of objects "
        "with session_id and failed, or a CSV file with the columns session_id,failed"
    )
