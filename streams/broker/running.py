"""What is said of a broker that runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunningBroker:
    """A broker that runs until the block that started it ends."""

    bootstrap: str
    """Addresses for clients, separated by commas."""
    name: str
    """Product and version, such as "Apache Kafka 4.4.0"."""
    keeps: str
    """What it keeps and what it cannot do, for people."""
    forgets: bool
    """Whether its records are gone once it stops."""
    fences: bool
    """Whether a transactional producer shuts out an older one of the same id."""
    compacts: bool
    """Whether topics that ask for it are compacted."""

    def describe(self) -> str:
        """Return one line for a person: what it is, where it listens, what it keeps."""
        return f"{self.name} on {self.bootstrap}: {self.keeps}"
