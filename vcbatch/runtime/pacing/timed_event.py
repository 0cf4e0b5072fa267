"""An event that records since when it has been set."""

from __future__ import annotations

import asyncio

from vcbatch.interfaces.clock import Clock


class TimedEvent(asyncio.Event):
    """`set_for` may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._since: float | None = None

    def set(self) -> None:
        if self._since is None:
            self._since = self._clock.monotonic()
        super().set()

    def clear(self) -> None:
        self._since = None
        super().clear()

    def set_for(self) -> float:
        """Seconds since it was set, 0 where it isn't."""
        since = self._since
        return 0.0 if since is None else self._clock.monotonic() - since
