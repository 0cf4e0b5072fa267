"""The controllers with plain watches in place of kopf, which has its own thread and clock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from vcbatch.interfaces import Api, Clock, Random
from vcbatch.runtime.caches.handlers import Feed
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.caches.watch import Reflector
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.control_plane import ControlPlane


class PlainWatches:
    """Implements `handlers.CustomResourceSource`."""

    def __init__(self, api: Api, feeds: Sequence[Feed], *, clock: Clock, random: Random) -> None:
        self.listed = asyncio.Event()
        self.watching = asyncio.Event()
        self._reflectors = [Reflector(api, feed.resource, feed.cache, clock=clock, random=random) for feed in feeds]

    def error(self) -> str:
        return "; ".join(filter(None, (reflector.error() for reflector in self._reflectors)))

    async def audit(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()
        self.listed.set()
        self.watching.set()
        await asyncio.Event().wait()

    async def watch(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())


def control_plane(api: Api, informers: Informers, *, clock: Clock, random: Random, **options: Any) -> ControlPlane:
    """The controllers as they run on a cluster, except for kopf. `options` are those of `ControlPlane`."""
    return ControlPlane(
        api,
        Connection(server="https://nowhere.invalid"),
        informers,
        clock=clock,
        random=random,
        followed_by=lambda feeds: PlainWatches(api, feeds, clock=clock, random=random),
        **options,
    )
