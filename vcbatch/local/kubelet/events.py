"""The kubelet's events: sent one after another in the background, equal ones counted on one object."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from typing import Any

from vcbatch.api.messages import shorten
from vcbatch.api.resources import EVENTS
from vcbatch.api.timestamps import format_time
from vcbatch.core.machine import EventType
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random

Json = dict[str, Any]
log = logging.getLogger(__name__)

_REMEMBERED = 4096
_BACKLOG = 2048
_COMPONENT = "kubelet"


class EventRecorder:
    """`event` only queues; `run` sends. An event that can't be sent is dropped, since events are only informational."""

    def __init__(self, *, api: Api, clock: Clock, random: Random, node_name: str) -> None:
        self._api = api
        self._clock = clock
        self._random = random
        self._node_name = node_name
        self._queue: deque[Json] = deque(maxlen=_BACKLOG)
        self._wake = asyncio.Event()
        self._sent: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()

    def event(self, pod: Json, *, type: EventType, reason: str, message: str, container: str = "") -> None:  # noqa: A002
        """Queue an event about a pod, or about one of its containers."""
        metadata = pod["metadata"]
        involved: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        }
        if container:
            involved["fieldPath"] = f"spec.containers{{{container}}}"
        now = format_time(self._clock.now())
        self._queue.append(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"namespace": metadata["namespace"]},
                "involvedObject": involved,
                "type": str(type),
                "reason": str(reason),
                "message": shorten(message),
                "source": {"component": _COMPONENT, "host": self._node_name},
                "reportingComponent": _COMPONENT,
                "reportingInstance": self._node_name,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            }
        )
        self._wake.set()

    async def run(self) -> None:
        """Send the queued events, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        """Send all queued events."""
        while self._queue:
            event = self._queue.popleft()
            try:
                await self._send(event)
            except ApiError as error:
                log.debug("event %s not sent: %s", event["reason"], error)

    async def _send(self, event: Json) -> None:
        involved = event["involvedObject"]
        key = (involved["uid"], involved.get("fieldPath", ""), event["reason"], event["message"])
        namespace = event["metadata"]["namespace"]
        known = self._sent.pop(key, None)
        if known is not None:
            name, count = known
            patch = {"count": count + 1, "lastTimestamp": event["lastTimestamp"]}
            try:
                await self._api.patch(EVENTS, name, patch, namespace=namespace)
            except ApiError as error:
                if not error.not_found:
                    raise
            else:
                self._remember(key, name, count + 1)
                return
        name = f"{involved['name'][:200]}.{self._random.token(16)}"
        await self._api.create(
            EVENTS, {**event, "metadata": {"name": name, "namespace": namespace}}, namespace=namespace
        )
        self._remember(key, name, 1)

    def _remember(self, key: tuple[str, ...], name: str, count: int) -> None:
        self._sent[key] = (name, count)
        if len(self._sent) > _REMEMBERED:
            self._sent.popitem(last=False)
