"""The metrics interface of the runtime. The layer of metrics systems is beside this one, so it is passed in as a small
protocol."""

from __future__ import annotations

from typing import Protocol


class Meter(Protocol):
    """Counters, gauges and durations by name; label values come from closed sets, or name an object until it is deleted
    and `forget` is called."""

    def count(self, name: str, value: float = 1.0, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...

    def duration(self, name: str, value: float, **labels: str) -> None:
        """One observation of a duration, in the unit of the metric's name."""
        ...

    def forget(self, name: str, **labels: str) -> None:
        """Remove the series of a deleted object that the labels name."""
        ...


class NoMeter:
    """Discards everything."""

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        return None

    def gauge(self, name: str, value: float, **labels: str) -> None:
        return None

    def duration(self, name: str, value: float, **labels: str) -> None:
        return None

    def forget(self, name: str, **labels: str) -> None:
        return None
