"""When a recorded line is due, at a multiple of the pace it was recorded at."""

import time


class Pace:
    """Measures from the first line that has a time; one that went back in time is due at once."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._first: tuple[int, float] | None = None

    def pause(self, recorded_at: int | None) -> float:
        """Return how many seconds to wait before the line recorded at this millisecond; 0 or less: none."""
        if self._speed is None or recorded_at is None:
            return 0.0
        if self._first is None:
            self._first = recorded_at, time.monotonic()
        recorded, started = self._first
        return started + (recorded_at - recorded) / 1000 / self._speed - time.monotonic()
