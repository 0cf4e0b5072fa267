"""Reports configuration files that became invalid, as an event on the Lease of the program that reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from vcbatch.api.reasons import ConfigurationEvent
from vcbatch.core.machine import Emit, EventType
from vcbatch.runtime.configuration.followed_file import FollowedFile
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder


class ConfigurationTrouble:
    """Queues errors without blocking; `run` sends the events."""

    def __init__(self, files: Iterable[FollowedFile[Any]], recorder: Recorder, own: OwnObject) -> None:
        self._recorder = recorder
        self._own = own
        self._unreported: list[str] = []
        self._wake = asyncio.Event()
        for file in files:
            file.listen_to_errors(self._refused)

    def _refused(self, error: str) -> None:
        self._unreported.append(error)
        self._wake.set()

    async def run(self) -> None:
        """Send the events, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            reported, self._unreported = self._unreported, []
            ref = await self._own.ref()
            if ref is None:
                continue
            for error in reported:
                message = f"keeping the last valid configuration: {error}"
                self._recorder.emit(
                    Emit(ref=ref, type=EventType.WARNING, reason=ConfigurationEvent.REFUSED, message=message)
                )
