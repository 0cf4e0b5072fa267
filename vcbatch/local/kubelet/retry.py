"""When to look again after something didn't work: later with each time in a row."""

from __future__ import annotations

from typing import Final

from vcbatch.interfaces.clock import Clock

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 60.0


class Retry:
    """One wish to look again, at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: float | None = None
        self._pause = FIRST_SECONDS

    @property
    def waits(self) -> bool:
        """Whether it is too early yet."""
        return self._at is not None and self._clock.monotonic() < self._at

    @property
    def left(self) -> float | None:
        """Seconds until the look that is wished for, less than 0 where it is due; None where there is no wish."""
        return None if self._at is None else self._at - self._clock.monotonic()

    def checked(self) -> None:
        """Everything is looked at now: a wish that is due is fulfilled."""
        if not self.waits:
            self._at = None

    def later(self) -> None:
        """It didn't work."""
        self._at = self._clock.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_SECONDS)

    def soon(self) -> None:
        """It didn't work, and waiting longer each time helps nobody."""
        self._at = self._clock.monotonic() + FIRST_SECONDS

    def now(self) -> None:
        """Something has changed: there is nothing to wait for."""
        self._at = None

    def worked(self) -> None:
        """The next row of failures begins anew."""
        self._at, self._pause = None, FIRST_SECONDS
