"""What went wrong with a request to an endpoint: in words that help, and whether asking again may."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any, Final

from streams.core.text import plain

_MAX_QUOTED: Final = 300
_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_LONGEST_S: Final = 1e9


class Unusable(Exception):
    """An answer that came, but cannot be used; its text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request had no usable answer."""

    reason: str
    """In words that follow the endpoint's name."""
    transient: bool
    """Whether asking again may help."""
    wait_s: float = 0.0
    """How long the endpoint wants to be left alone."""
    status: int | None = None
    """Of the HTTP answer, where that is what went wrong."""
    down: bool = False
    """Whether the endpoint as a whole is in doubt, not this one request."""
    silent: bool = False
    """Whether it let the time run out."""
    problem: str = ""
    """What was wrong with an answer that came."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """Tells errors of one endpoint."""

    section: str
    """The prefix of its settings."""
    timeout_s: float
    key: str = field(default="", repr=False)
    """Its secret, which some endpoints quote in their messages."""

    def of(self, error: Exception) -> Refusal | None:
        """Say what went wrong; None for what is no refusal but a bug."""
        from openai import APIConnectionError, APIStatusError, OpenAIError  # noqa: PLC0415  (an extra)

        if isinstance(error, TimeoutError):
            reason = f"did not answer within {self.timeout_s:g} s (judge_timeout_s)"
            return Refusal(reason, transient=True, down=True, silent=True)
        if isinstance(error, APIStatusError):
            return self._by_status(error.status_code, str(error), error.response.headers)
        if isinstance(error, APIConnectionError):
            said = self._quoted(_innermost(error))
            reason = f"cannot be reached: {said}; is it running, and is {self.section}_base_url right?"
            return Refusal(reason, transient=True, down=True)
        if isinstance(error, Unusable | JSONDecodeError | UnicodeDecodeError | OpenAIError):
            problem = self._quoted(str(error))
            return Refusal(f"answered what cannot be used: {problem}", transient=True, problem=problem)
        return None

    def _by_status(self, status: int, message: str, headers: Mapping[str, Any]) -> Refusal:
        said = self._quoted(message.removeprefix(f"Error code: {status}").removeprefix(" - "))
        told = f"({status}): {said}" if said else f"({status})"
        wait_s = _wait(headers)
        if status in {401, 403}:
            reason = f"refused the key {told}; see {self.section}_api_key_file"
            return Refusal(reason, transient=False, status=status, down=True)
        if status == 404:
            reason = f"knows no such model or path {told}; see {self.section}_model and {self.section}_base_url"
            return Refusal(reason, transient=False, status=status, down=True)
        if status == 429:
            reason = f"wants fewer requests {told}; see judge_concurrency"
            return Refusal(reason, transient=True, wait_s=wait_s, status=status)
        if status >= 500 or status in _TRANSIENT:
            return Refusal(f"failed {told}", transient=True, wait_s=wait_s, status=status, down=True)
        return Refusal(f"refused the request {told}", transient=False, status=status)

    def _quoted(self, text: str) -> str:
        return plain(text.replace(self.key, "(hidden)") if self.key else text, _MAX_QUOTED)


def _wait(headers: Mapping[str, Any]) -> float:
    """Return the seconds that Retry-After asks for, as a number or as a date; 0 where it does not."""
    asked = str(headers.get("retry-after", ""))
    try:
        return max(0.0, min(float(asked), _LONGEST_S))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(asked)
    except ValueError:
        return 0.0
    return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _innermost(error: BaseException) -> str:
    """Return what the operating system said, which the libraries above it wrap."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__
