"""Single ConfigMaps that the scheduler configuration names, read periodically: those of the cluster are never
listed."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from vcbatch.api.config_map import ConfigMap
from vcbatch.api.resources import CONFIGMAPS
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.scheduler import Scheduler

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 15.0


class ConfigMaps:
    """Passes the ConfigMaps that the scheduler needs to it; `ready` is set once they were read."""

    def __init__(self, api: Api, scheduler: Scheduler, *, clock: Clock, wake: asyncio.Event) -> None:
        self._api = api
        self._scheduler = scheduler
        self._clock = clock
        self._wake = wake
        self._known: dict[tuple[str, str], ConfigMap] = {}
        self._refused: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Read them periodically, until cancelled."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            await self.refresh()

    async def refresh(self) -> None:
        """Read them once. One that can't be read stays as it was."""
        wanted = self._scheduler.policy.config_maps
        for key in sorted(self._known.keys() - wanted):
            self._gone(key)
        for namespace, name in sorted(wanted):
            try:
                found = await self._api.get(CONFIGMAPS, name, namespace=namespace, model=ConfigMap)
            except ApiError as error:
                if error.not_found:
                    self._gone((namespace, name))
                elif (namespace, name) not in self._refused:
                    self._refused.add((namespace, name))
                    log.warning("ConfigMap %s/%s can't be read: %s", namespace, name, error.message)
                continue
            self._refused.discard((namespace, name))
            self._known[namespace, name] = found
            self._scheduler.apply(CONFIGMAPS, "MODIFIED", found)
        if self._scheduler.dirty:
            self._wake.set()

    def _gone(self, key: tuple[str, str]) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._scheduler.apply(CONFIGMAPS, "DELETED", known)
