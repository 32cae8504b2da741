"""A dead letter always fits into its topic, whatever its record was: one that did not would stop a partition for good."""

import pytest
from aiokafka import ConsumerRecord

from streams.admin import MAX_DEAD_LETTER_BYTES
from streams.agents.outbox import Outbox
from streams.engine import Out
from streams.engine.producing import size_in_request
from streams.errors import InvalidValue
from streams.topics import BY_ROLE, named
from streams.wire import Wire

MIB = 1024 * 1024


def dead_letter(key: bytes | None, value: bytes | None, *headers: tuple[str, bytes | None]) -> Out:
    record = ConsumerRecord("in", 0, 7, 1, 0, key, value, None, 0, 0, headers)
    return Outbox(Wire(), named({}), dict.fromkeys(BY_ROLE, 1)).dead_letter(record, InvalidValue("x", "y", "z"))


def test_what_fits_is_kept_as_it_came() -> None:
    out = dead_letter(b"k", b"v" * (31 * MIB), ("theirs", b"h" * (MIB // 2)), ("empty", None))
    assert (out.key, len(out.value or b"")) == (b"k", 31 * MIB)
    assert dict(out.headers)["empty"] is None
    assert "dlq-cut-from-bytes" not in dict(out.headers)


@pytest.mark.parametrize(
    ("value_bytes", "header_bytes"), [(40 * MIB, 10), (31 * MIB, 2 * MIB), (MIB, 33 * MIB), (0, 33 * MIB)]
)
def test_what_does_not_is_cut_and_says_so(value_bytes: int, header_bytes: int) -> None:
    out = dead_letter(b"k", b"v" * value_bytes or None, ("theirs", b"h" * header_bytes))
    headers = dict(out.headers)
    assert size_in_request(out.key, out.value, out.headers) <= MAX_DEAD_LETTER_BYTES
    assert headers["dlq-cut-from-bytes"] == str(value_bytes).encode()
    assert headers["dlq-error"] == b"InvalidValue"
    if header_bytes > MAX_DEAD_LETTER_BYTES:
        assert (out.key, headers["dlq-left-out"], "theirs" in headers) == (None, b"key and headers", False)
    else:
        assert (out.key, "theirs" in headers) == (b"k", True)
        assert size_in_request(out.key, out.value, out.headers) > MAX_DEAD_LETTER_BYTES - 2_000
