"""Starts and stops brokers of our own, for development and for tests.

Each is a plain `with` block that yields the running broker. Starting blocks the
caller: a tenth of a second for `embedded`, some seconds for `apache_kafka`; with
asyncio, open the block around `asyncio.run`.
"""

from streams.broker.kafka import ApacheKafka, apache_kafka
from streams.broker.running import RunningBroker
from streams.broker.tansu import EmbeddedBroker, embedded

__all__ = ["ApacheKafka", "EmbeddedBroker", "RunningBroker", "apache_kafka", "embedded"]
