"""The objects beside pods that a job's plugins keep: read once, then known from our own writes.

They are Services, ConfigMaps, Secrets and the like, of which a cluster has thousands that are not ours; watching them
all to see a handful would cost more than everything else the controllers do. Somebody who removes one by hand is
noticed with the next read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vcbatch.api.resources import CONFIGMAPS, NETWORKPOLICIES, SECRETS, SERVICES, Resource
from vcbatch.core.job import ChildKey
from vcbatch.runtime.caches.cache import Cache
from vcbatch.seams.api import Api, ApiError, Json
from vcbatch.seams.clock import Clock

CHILD_RESOURCES = (SERVICES, CONFIGMAPS, SECRETS, NETWORKPOLICIES)

_READ_AGAIN_SECONDS = 600.0


class Children:
    """The plugin objects of all jobs. Its caches are to be the applier's, so that every write's answer is in them."""

    def __init__(self, api: Api, *, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self.caches: dict[Resource, Cache[Json]] = {resource: Cache() for resource in CHILD_RESOURCES}
        self._read: dict[str, dict[ChildKey, float]] = {}  # job UID -> when each was read

    async def of(self, job_uid: str, namespace: str, wanted: Sequence[ChildKey]) -> dict[ChildKey, Json]:
        """Those of `wanted` that exist, as they are stored. Raises `ApiError` where the server doesn't say."""
        read = self._read.setdefault(job_uid, {})
        found: dict[ChildKey, Json] = {}
        for key in wanted:
            resource, name = key
            if self._clock.monotonic() - read.get(key, -_READ_AGAIN_SECONDS) >= _READ_AGAIN_SECONDS:
                await self._get(resource, namespace, name)
                read[key] = self._clock.monotonic()
            stored = self.caches[resource].by_key(f"{namespace}/{name}")
            if stored is not None and stored["metadata"].get("deletionTimestamp"):
                # Nobody watches it go, and an object of the same name may be wanted again.
                await self._get(resource, namespace, name)
                stored = self.caches[resource].by_key(f"{namespace}/{name}")
            if stored is not None:
                found[key] = stored
        return found

    def forget(self, job_uid: str, namespace: str) -> None:
        """The job is gone."""
        for resource, name in self._read.pop(job_uid, {}):
            cache = self.caches[resource]
            stored: Any = cache.by_key(f"{namespace}/{name}")
            if stored is not None:
                cache.discard(stored["metadata"]["uid"])

    async def _get(self, resource: Resource, namespace: str, name: str) -> None:
        cache = self.caches[resource]
        try:
            cache.put(await self._api.get(resource, name, namespace=namespace))
        except ApiError as error:
            if not error.not_found:
                raise
            stored = cache.by_key(f"{namespace}/{name}")
            if stored is not None:
                cache.discard(stored["metadata"]["uid"])
