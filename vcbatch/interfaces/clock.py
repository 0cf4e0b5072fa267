"""The clock interface: reading the time and waiting for it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is written, monotonic time for what is waited for."""

    def now(self) -> datetime:
        """The wall time, timezone-aware in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back, whatever happens to the wall clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time; zero or less yields once."""
        ...
