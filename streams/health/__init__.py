"""Watches over a running worker from a thread of its own: what stands still is said, shown, and in the end ended."""

from streams.health.health import Health

__all__ = ["Health"]
