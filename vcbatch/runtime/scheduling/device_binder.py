"""Locks nodes while pods are allocated GPUs: a device plugin that allocates them identifies the pod by the lock.

The lock is an annotation with the time it was taken. The device plugin removes it once it has served the pod, or else
the scheduler once the pod is bound; one that is older than five minutes has expired (Volcano's node lock).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.resources import NODES
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.interfaces.api import Api, ApiError, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.scheduler.model.result import Bind

log = logging.getLogger(__name__)

EXPIRY: Final = timedelta(minutes=5)
_CHECK_SECONDS: Final = 1.0
_HANDED_OVER: Final = frozenset({names.GPU_LOCK, names.VGPU_LOCK})
"""Locks that device plugins remove. The NPU plugin doesn't know the lock: it finds pods by their annotations."""


class DeviceBinder:
    """`ready(binds)` is called with pods that may be bound now, `failed(uid, error)` for one whose node can't be
    locked. Only pods of the same node wait for each other."""

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        ready: Callable[[Iterable[Bind]], None],
        failed: Callable[[str, str], None],
    ) -> None:
        self._api = api
        self._clock = clock
        self._ready = ready
        self._failed = failed
        self._queues: dict[str, deque[Bind]] = {}
        self._nodes: asyncio.Queue[str] = asyncio.Queue()
        self._unlocks: asyncio.Queue[Bind] = asyncio.Queue()
        self._locked: dict[str, Bind] = {}

    def submit(self, binds: Iterable[Bind]) -> None:
        """Process these binds. Those that need no lock are passed on at once."""
        plain: list[Bind] = []
        for bind in binds:
            if not bind.lock:
                plain.append(bind)
            elif bind.node in self._queues:
                self._queues[bind.node].append(bind)
            else:
                self._queues[bind.node] = deque([bind])
                self._nodes.put_nowait(bind.node)
        if plain:
            self._ready(plain)

    def bound(self, uid: str) -> None:
        """The pod is bound: the lock is removed here, unless the device plugin removes it."""
        bind = self._locked.pop(uid, None)
        if bind is not None and bind.lock not in _HANDED_OVER:
            self._unlocks.put_nowait(bind)

    def refused(self, uid: str) -> None:
        """The pod wasn't bound: remove the lock, since the device plugin won't."""
        bind = self._locked.pop(uid, None)
        if bind is not None:
            self._unlocks.put_nowait(bind)

    async def run(self) -> None:
        """Process binds until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._unlock_all())
            while True:
                group.create_task(self._serve(await self._nodes.get()))

    async def _serve(self, node: str) -> None:
        queue = self._queues[node]
        while queue:
            bind = queue.popleft()
            try:
                error = await self._lock(bind)
            except ApiError as refused:
                error = refused.message
            except Exception as raised:  # a bind without a result would hold its node's resources for ever
                log.exception("locking node %s failed", node)
                error = f"{type(raised).__name__}: {raised}"
            if error:
                log.warning("node %s can't be locked for %s/%s: %s", node, bind.namespace, bind.name, error)
                self._failed(bind.uid, error)
            else:
                self._locked[bind.uid] = bind
                self._ready([bind])
        del self._queues[node]

    async def _lock(self, bind: Bind) -> str:
        """Take the lock as soon as it is free or has expired. Returns why it can't be taken, or ""."""
        deadline = self._clock.now() + 2 * EXPIRY
        while True:
            node = await self._api.get(NODES, bind.node, model=Node)
            if not self._held(node, bind.lock):
                if await self._write(node, bind.lock, format_time(self._clock.now())):
                    return ""
            elif self._clock.now() >= deadline:
                return f"node {bind.node} stayed locked by its annotation {bind.lock}"
            await self._clock.sleep(_CHECK_SECONDS)

    def _held(self, node: Node, lock: str) -> bool:
        taken = (node.metadata.annotations or {}).get(lock)
        if taken is None:
            return False
        try:
            return self._clock.now() - parse_time(taken) < EXPIRY
        except ValueError:
            return False  # without a time it would never expire

    async def _write(self, node: Node, lock: str, value: str | None) -> bool:
        """Whether it was written: False where the node changed since it was read."""
        patch: Json = {
            "metadata": {
                "uid": node.metadata.uid,
                "resourceVersion": node.metadata.resource_version,
                "annotations": {lock: value},
            }
        }
        try:
            await self._api.patch(NODES, node.metadata.name, patch)
        except ApiError as error:
            if error.conflict:
                return False
            raise
        return True

    async def _unlock_all(self) -> None:
        while True:
            bind = await self._unlocks.get()
            try:
                while not await self._write(await self._api.get(NODES, bind.node, model=Node), bind.lock, None):
                    await self._clock.sleep(_CHECK_SECONDS)
            except ApiError as error:  # then it expires
                log.warning("node %s can't be unlocked: %s", bind.node, error.message)
