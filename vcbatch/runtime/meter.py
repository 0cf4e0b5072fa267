"""What the runtime counts. The layer of metrics systems is beside this one, so it is handed in as a small protocol."""

from __future__ import annotations

from typing import Protocol


class Meter(Protocol):
    """Counters, gauges and durations by name; label values come from closed sets, never from users' objects."""

    def count(self, name: str, value: float = 1.0, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...

    def seconds(self, name: str, value: float, **labels: str) -> None:
        """One observation of a duration."""
        ...


class NoMeter:
    """Counts nothing."""

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        return None

    def gauge(self, name: str, value: float, **labels: str) -> None:
        return None

    def seconds(self, name: str, value: float, **labels: str) -> None:
        return None
