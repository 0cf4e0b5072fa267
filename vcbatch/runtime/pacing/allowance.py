"""A token bucket."""

from __future__ import annotations


class Allowance:
    """`burst` tokens at once, and one more every `seconds`. Times are passed in, from a clock that never goes back."""

    __slots__ = ("_burst", "_filled", "_left", "_seconds")

    def __init__(self, *, burst: float, seconds: float, now: float) -> None:
        self._burst = burst
        self._seconds = seconds
        self._left = burst
        self._filled = now

    def take(self, *, now: float, leave: float = 0.0) -> bool:
        """Take one token if at least `leave` tokens remain; returns whether it was taken."""
        self._fill(now)
        if self._left - 1 < leave:
            return False
        self._left -= 1
        return True

    def wait(self, *, now: float) -> float:
        """Seconds until a token is available; 0 where one is."""
        self._fill(now)
        return max(0.0, 1 - self._left) * self._seconds

    def _fill(self, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._filled) / self._seconds)
        self._filled = now
