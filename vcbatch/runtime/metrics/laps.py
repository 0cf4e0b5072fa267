"""Durations of the parts of a cycle."""

from __future__ import annotations

from typing import assert_never

from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.scheduler.framework.laps import Part


class CycleLaps:
    """A stopwatch that exports to the meter."""

    def __init__(self, clock: Clock, meter: Meter) -> None:
        self._clock = clock
        self._meter = meter
        self._started = self._last = 0.0

    def start(self) -> None:
        """Start a cycle."""
        self._started = self._last = self._clock.monotonic()

    def lap(self, part: Part, name: str = "") -> None:
        """End this part."""
        now = self._clock.monotonic()
        spent, self._last = (now - self._last) * 1000, now
        match part:
            case Part.PLUGIN_OPENED:
                self._plugin(name, "OnSessionOpen", spent)
            case Part.PLUGIN_CLOSED:
                self._plugin(name, "OnSessionClose", spent)
            case Part.OPENED:
                self._meter.duration("open_session_duration_milliseconds", (now - self._started) * 1000)
            case Part.ACTION:
                self._meter.duration("action_scheduling_latency_milliseconds", spent, action=name)
            case _:
                assert_never(part)

    def _plugin(self, name: str, when: str, spent: float) -> None:
        self._meter.duration("plugin_scheduling_latency_milliseconds", spent, plugin=name, OnSession=when)
