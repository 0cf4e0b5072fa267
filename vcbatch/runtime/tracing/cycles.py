"""A scheduling cycle as a span, with one below it for each action."""

from __future__ import annotations

from datetime import datetime

from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.tracing.tracer import Tracer
from vcbatch.scheduler.framework.laps import Laps, Part
from vcbatch.scheduler.model.result import CycleResult


class CycleSpans:
    """A stopwatch that records spans and passes all calls on to another one."""

    def __init__(self, tracer: Tracer, laps: Laps, *, clock: Clock) -> None:
        self._tracer = tracer
        self._laps = laps
        self._clock = clock
        self._began = self._last = clock.now()
        self._actions: list[tuple[str, datetime, datetime]] = []

    def start(self) -> None:
        """Start a cycle."""
        self._began = self._last = self._clock.now()
        self._actions.clear()
        self._laps.start()

    def lap(self, part: Part, name: str = "") -> None:
        """End this part."""
        began, self._last = self._last, self._clock.now()
        if part is Part.ACTION:
            self._actions.append((name, began, self._last))
        self._laps.lap(part, name)

    def of(self, result: CycleResult) -> None:
        """Record the spans of a finished cycle."""
        figures = result.figures.gangs
        attributes = {
            "vcbatch.gangs": len(figures),
            "vcbatch.pods": len(result.binds) + sum(gang.lacking for gang in figures if gang.tried),
            "vcbatch.binds": len(result.binds),
            "vcbatch.evictions": len(result.evictions),
        }
        cycle = self._tracer.record("scheduler.cycle", begin=self._began, end=self._clock.now(), attributes=attributes)
        if cycle:
            for name, began, ended in self._actions:
                self._tracer.record(f"action.{name}", begin=began, end=ended, parent=cycle)
