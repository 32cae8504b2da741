"""The engine's numbers that a deployment or a test may want to change."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Times in seconds unless the name says otherwise.

    session_timeout_s: without a heartbeat for this long a worker loses its partitions.
    rebalance_timeout_s: how long the group waits for a member to join again.
    drain_s: how long a rebalance or a stop waits for batches that are out; below the former.
    goodbye_s: how long a stop waits for the broker with each of the last states (a rebalance too), the
        last commit and leaving the group; what it misses is found out by the others, or read again.
    metadata_age_s: how old may be what is known of the topics' partitions; new ones are read after that.
    commit_interval_s: between the commits of offsets; what was done since the last is read again after a kill.
    fetch_max_wait_ms: how long the broker holds a fetch that finds nothing.
    max_fetch_bytes: most bytes of a partition in one fetch; below what the broker takes as the
        largest record this does not matter, it always returns one.
    max_batch_bytes: a partition with this much at hand is not read further.
    retry_min_s, retry_max_s: wait before a failed batch is read again, doubled each time.
    slack_ms, most_slack_ms: how far a by-time partition may be ahead of the others, up to date and
        far behind; the latter below the usual wait for a trace whose scores have come.
    patience_s: how long a by-time partition waits for one that does not answer.
    look_again_s, idle_s: the longest waits of the poll while something waits by time, and else.
    beyond_end_s: how long a partition must be seen to end before the offset that is wanted, until that
        is believed without an error that says so: a new leader's high water lags a moment.
    restores: how many partitions restore their state at the same time.
    delivery_timeout_s: how long an append may stay without its ack.
    """

    session_timeout_s: float = 15.0
    rebalance_timeout_s: float = 60.0
    heartbeat_s: float = 3.0
    drain_s: float = 30.0
    goodbye_s: float = 5.0
    metadata_age_s: float = 20.0
    commit_interval_s: float = 0.2
    fetch_max_wait_ms: int = 200
    max_fetch_bytes: int = 1024 * 1024
    max_batch_bytes: int = 4 * 1024 * 1024
    retry_min_s: float = 0.1
    retry_max_s: float = 10.0
    slack_ms: int = 1_000
    most_slack_ms: int = 10_000
    patience_s: float = 5.0
    look_again_s: float = 0.05
    idle_s: float = 1.0
    beyond_end_s: float = 60.0
    restores: int = 4
    delivery_timeout_s: float = 30.0


# For the embedded development broker: Tansu lets a group's first member wait half its session timeout,
# and answers with nothing at all past a partition's end, where Apache Kafka has an error.
DEVELOPMENT = Tuning(session_timeout_s=4.0, heartbeat_s=0.5, beyond_end_s=3.0)
