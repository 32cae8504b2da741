"""Defects that plain Faust shows on a broker. A test that fails here: upstream has mended it."""

from collections.abc import Callable
from typing import Any

import pytest

Shows = Callable[[str, Callable[[Any], bool]], bool]


def test_a_restart_loses_records(shows: Shows) -> None:
    """Upstream 216, 217; faust-streaming 0.15.3. Partitions are active before the seek, and what comes is cleared."""
    assert shows("restart", lambda found: found["lost"] > 0)


def test_the_last_record_is_delivered_twice(shows: Shows) -> None:
    """No upstream report; faust-streaming 0.15.3: `offset >= r_offset` takes the offset last delivered for a new one."""
    assert shows("read_offset", lambda found: found == {"doubled": 1})


def test_the_live_set_of_active_partitions_loses_records(shows: Shows) -> None:
    """No upstream report; faust-streaming 0.15.3. Emptied while aiokafka waits, it means all partitions."""
    assert shows("live_set", lambda found: found["lost"] > 0)


def test_a_record_that_failed_is_acknowledged(shows: Shows) -> None:
    """As documented upstream; faust-streaming 0.15.3: an agent that raises has lost the record."""
    assert shows("failing", lambda found: found == {"lost": 1})


@pytest.mark.kafka
def test_recovery_waits_for_a_transaction_marker(shows: Shows) -> None:
    """Upstream 432; faust-streaming 0.15.3 waits for the offset before the end, which is no record's."""
    assert shows("markers", lambda found: found == {"completed": False})


def test_counts_are_wrong_after_a_kill(shows: Shows) -> None:
    """Upstream 158 is near; faust-streaming 0.15.3: store and changelog are ahead of the committed offset.

    Mostly the count is too high, at times too low; 50 would be right.
    """
    assert shows("counts", lambda found: found["counted"] != 50)
