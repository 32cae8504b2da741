"""A ready-made redaction: fields by name and text by pattern, blanked before anything leaves the process."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from streams.client.records import Fields

BLANK: Final = "[redacted]"
SECRET_FIELDS: Final = frozenset(
    {
        "password", "passwd", "secret", "client_secret", "token", "access_token", "refresh_token", "id_token",
        "api_key", "apikey", "x_api_key", "authorization", "proxy_authorization", "cookie", "set_cookie",
        "private_key", "credentials", "ssn", "card_number", "cvv",
    }
)  # fmt: skip
SECRET_PATTERNS: Final = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    r"\b(?:ghp|gho|ghs|ghu|github_pat)_[A-Za-z0-9_]{20,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"(?i)\bbearer\s+[\w.~+/=-]{8,}",
    r"(?<=://)[^\s/:@]{1,128}:[^\s/@]{1,256}(?=@)",
    r"\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{0,128}\w",
    r"\b(?:\d[ -]?){13,19}\b",
)
"""Keys, tokens, logins in addresses, e-mail addresses, card numbers."""

_DEEPEST: Final = 64
_KEPT: Final = frozenset(
    {
        "trace_id", "session_id", "project", "span_id", "parent_span_id", "score_id", "eval_run_id", "status", "kind",
        "target", "data_type", "source", "started_at", "ended_at", "created_at", "completion_start_time",
        "turn_index", "ends_turn", "token_usage", "cost", "value", "spans",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Redaction:
    """Blanks what must not leave the process; give it to a Gate as `redact`.

    fields: names whose whole values are blanked wherever they stand, case and `-` or `_` aside.
    patterns: regular expressions; what they match in any text is blanked. JSON inside a text is looked into.

    Ids, times, statuses and numbers of a record stay as they are: put nothing secret into an id.
    """

    fields: Iterable[str] = SECRET_FIELDS
    patterns: Iterable[str] = SECRET_PATTERNS
    _names: frozenset[str] = field(init=False, repr=False)
    _found: tuple[re.Pattern[str], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_names", frozenset(map(_normal, self.fields)))
        object.__setattr__(self, "_found", tuple(re.compile(pattern) for pattern in self.patterns))

    def __call__(self, record: Fields) -> Fields:
        """Return the record with what must not leave blanked."""
        clean = {name: value if name in _KEPT else self._clean(value, 0) for name, value in record.items()}
        if record.get("spans"):
            clean["spans"] = [self(span) for span in record["spans"]]
        if record.get("data_type") == "CATEGORICAL":
            clean["value"] = self._clean(record.get("value"), 0)
        return clean

    def _clean(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            return BLANK
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, list):
            return [self._clean(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {
                self._text(name, depth): BLANK if _normal(name) in self._names else self._clean(item, depth + 1)
                for name, item in value.items()
            }
        return value

    def _text(self, text: str, depth: int) -> str:
        if text.lstrip()[:1] in ("{", "["):
            # Models' tool arguments come as JSON text: the names of fields count there too.
            try:
                held = orjson.loads(text)
            except orjson.JSONDecodeError:
                pass
            else:
                return orjson.dumps(self._clean(held, depth + 1)).decode()
        for pattern in self._found:
            text = pattern.sub(BLANK, text)
        return text


def _normal(name: str) -> str:
    return name.lower().replace("-", "_")
