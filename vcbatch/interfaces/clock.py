"""The clock interface: reading the time and waiting for it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for timestamps, monotonic time for timeouts and delays."""

    def now(self) -> datetime:
        """The wall time, timezone-aware in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never decreases, even where the wall clock is set back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time; zero or less yields once."""
        ...
