"""When to retry after a failure: later with each one in a row."""

from __future__ import annotations

from typing import Final

from vcbatch.interfaces.clock import Clock

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 60.0


class Retry:
    """At most one scheduled retry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: float | None = None
        self._pause = FIRST_SECONDS

    @property
    def waits(self) -> bool:
        """Whether it is too early for the retry."""
        return self._at is not None and self._clock.monotonic() < self._at

    @property
    def left(self) -> float | None:
        """Seconds until the retry, less than 0 where it is overdue; None where none is scheduled."""
        return None if self._at is None else self._at - self._clock.monotonic()

    def checked(self) -> None:
        """Called with each step: a retry that is due is done."""
        if not self.waits:
            self._at = None

    def later(self) -> None:
        """Schedule a retry, with a doubled delay for the next one."""
        self._at = self._clock.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_SECONDS)

    def soon(self) -> None:
        """Schedule a retry with the shortest delay, where longer ones have no benefit."""
        self._at = self._clock.monotonic() + FIRST_SECONDS

    def now(self) -> None:
        """Something has changed: retry without a delay."""
        self._at = None

    def worked(self) -> None:
        """Reset the delay after a success."""
        self._at, self._pause = None, FIRST_SECONDS
