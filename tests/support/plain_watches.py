"""Custom resources by watches of our own, in place of kopf: it has a thread and a clock of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from vcbatch.runtime.handlers import Feed
from vcbatch.runtime.watch import Reflector
from vcbatch.seams import Api, Clock, Random


class PlainWatches:
    """Implements `handlers.CustomResourceSource`."""

    def __init__(self, api: Api, feeds: Sequence[Feed], *, clock: Clock, random: Random) -> None:
        self.listed = asyncio.Event()
        self.watching = asyncio.Event()
        self._reflectors = [Reflector(api, feed.resource, feed.cache, clock=clock, random=random) for feed in feeds]

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
