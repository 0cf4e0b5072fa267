"""Reports user-defined scheduler plugins that fail or are slow: in the log and the metrics each time, and as an event
on the scheduler's Lease unless a gang is concerned, whose PodGroup reports it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from vcbatch.api.reasons import PolicyEvent
from vcbatch.core.machine import Emit, EventType
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.scheduler.model.result import PluginFailure

log = logging.getLogger(__name__)


class PluginTrouble:
    """Queues failures without blocking; `run` sends the events."""

    def __init__(self, recorder: Recorder, own: OwnObject | None, *, meter: Meter) -> None:
        self._recorder = recorder
        self._own = own
        self._meter = meter
        self._unreported: dict[str, PolicyEvent] = {}
        self._wake = asyncio.Event()

    def failed(self, failures: Iterable[PluginFailure]) -> None:
        """Log and count failures."""
        for failure in failures:
            whom = f"{failure.gang} is set aside" if failure.gang else "nothing is decided until it is tried again"
            log.error("a plugin failed, %s: %s", whom, failure.sentence)
            self._meter.count("plugin_failures", plugin=failure.name)
            if not failure.gang:
                self._report(
                    PolicyEvent.PLUGIN_FAILED, f"nothing is decided until it is tried again: {failure.sentence}"
                )

    def slow(self, name: str, where: str) -> None:
        """Count a plugin that a cycle waited for in the function `where`; the log has a line already."""
        self._meter.count("plugin_slow_cycles", plugin=name)
        self._report(PolicyEvent.PLUGIN_SLOW, f"nothing else was decided while a cycle waited for {where}")

    def _report(self, reason: PolicyEvent, message: str) -> None:
        self._unreported[message] = reason
        self._wake.set()

    async def run(self) -> None:
        """Send the events, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            reported, self._unreported = self._unreported, {}
            ref = None if self._own is None else await self._own.ref()
            if ref is None:
                continue
            for message, reason in reported.items():
                self._recorder.emit(Emit(ref=ref, type=EventType.WARNING, reason=reason, message=message))
