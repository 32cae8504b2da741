"""A partition's state without a broker: what is committed stands in a dict."""

from types import SimpleNamespace


class StoredState:
    """As the engine's PartitionState, for what the stages do with it."""

    def __init__(self, partition=0):
        self.partition = partition
        self.source = SimpleNamespace(topic="in", partition=partition)
        self.values = {}
        self.commits = []

    def get(self, key):
        return self.values.get(key)

    def items(self, prefix=b""):
        return [(key, value) for key, value in self.values.items() if key.startswith(prefix)]

    async def commit(self, changes):
        self.store(changes)

    def store(self, changes):
        self.commits.append(dict(changes))
        for key, value in changes.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value
