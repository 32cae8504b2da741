"""Defects that plain Faust shows on a broker. A test that fails here: upstream has mended it."""

from collections.abc import Callable
from typing import Any

import pytest

Found = Callable[[str], dict[str, Any]]


def test_a_restart_loses_records(plain: Found) -> None:
    """Upstream 216, 217; faust-streaming 0.15.3. Partitions are active before the seek, and what comes is cleared."""
    assert plain("restart")["lost"] > 0


def test_the_last_record_is_delivered_twice(plain: Found) -> None:
    """No upstream report; faust-streaming 0.15.3: `offset >= r_offset` takes the offset last delivered for a new one."""
    assert plain("read_offset") == {"doubled": 1}


def test_the_live_set_of_active_partitions_loses_records(plain: Found) -> None:
    """No upstream report; faust-streaming 0.15.3. Emptied while aiokafka waits, it means all partitions."""
    assert plain("live_set")["lost"] > 0


def test_a_record_that_failed_is_acknowledged(plain: Found) -> None:
    """As documented upstream; faust-streaming 0.15.3: an agent that raises has lost the record."""
    assert plain("failing") == {"lost": 1}


@pytest.mark.kafka
def test_recovery_waits_for_a_transaction_marker(plain: Found) -> None:
    """Upstream 432; faust-streaming 0.15.3 waits for the offset before the end, which is no record's."""
    assert plain("markers") == {"completed": False}


def test_counts_are_too_high_after_a_kill(plain: Found) -> None:
    """Upstream 158 is near; faust-streaming 0.15.3: store and changelog are ahead of the committed offset.

    Mostly the count is too high, at times too low, and at times it does not come back at all; 50 would be right.
    """
    found = plain("counts")
    assert found is None or found["counted"] != 50
