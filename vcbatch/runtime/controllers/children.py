"""The objects besides pods that a job's plugins create: read at the job's first reconcile, then known from our own
writes.

They are Services, ConfigMaps, Secrets and the like, of which a cluster has thousands that belong to others. Watching
them would require the permission to list every Secret, and more work than everything else that the controllers do.
Instead they are read again before the controller creates pods that need them, and compared periodically
(`ChildrenCheck`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.resources import CONFIGMAPS, NETWORKPOLICIES, SECRETS, SERVICES, Resource
from vcbatch.core.job import ChildKey
from vcbatch.interfaces.api import Api, ApiError, Json, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.caches.cache import Cache

log = logging.getLogger(__name__)

CHILD_RESOURCES = (SERVICES, CONFIGMAPS, SECRETS, NETWORKPOLICIES)

CHECK_AFTER_SECONDS: Final = 45.0
"""A running job's objects are compared with the server's after this many seconds."""
_FRESH_SECONDS: Final = 10.0
_TICK_SECONDS: Final = 5.0
_READS_PER_TICK: Final = 250
"""50 reads per second at most: 3,000 objects of running jobs in a minute."""


class _Head(msgspec.Struct):
    """The fields of an object that identify its version."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Children:
    """The plugin objects of all jobs. The applier must share its caches, so that they contain the response to every
    write."""

    def __init__(self, api: Api, *, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self.caches: dict[Resource, Cache[Json]] = {resource: Cache() for resource in CHILD_RESOURCES}
        self._read: dict[str, dict[ChildKey, float]] = {}  # job UID -> time of the last read of each object
        self._attempts: dict[str, tuple[int, int]] = {}  # job UID -> the attempt in which its objects were read

    async def of(self, job_uid: str, namespace: str, wanted: Sequence[ChildKey]) -> dict[ChildKey, Json]:
        """Those of `wanted` that exist, as they are stored. An object that isn't controlled by the job, or is being
        deleted, is read again in each call, since no event reports that its name is free. An object that may not be
        read counts as absent: the attempt to create it then fails with the server's reason. Raises `ApiError` where the
        server doesn't answer."""
        read = self._read.setdefault(job_uid, {})
        found: dict[ChildKey, Json] = {}
        for key in wanted:
            if key[0] not in self.caches:  # of a user's plugin; our writes of it aren't cached
                other = await self._read_one(key, namespace)
                found |= {key: other} if other is not None else {}
                continue
            stored = self._held(key, namespace)
            if key not in read or (stored is not None and not _is_settled(stored, job_uid)):
                await self._get(key, namespace)
                read[key] = self._clock.monotonic()
                stored = self._held(key, namespace)
            if stored is not None:
                found[key] = stored
        for key in read.keys() - set(wanted):  # the job's plugins have changed
            del read[key]
        return found

    def age(self, job_uid: str) -> float:
        """Seconds since that job's objects were last read or compared; 0 for a job without any."""
        read = self._read.get(job_uid)
        return self._clock.monotonic() - min(read.values()) if read else 0.0

    def is_fresh(self, job_uid: str, *, attempt: tuple[int, int]) -> bool:
        """Whether that job's objects were read or compared recently, and in this attempt of the job."""
        return self._attempts.setdefault(job_uid, attempt) == attempt and self.age(job_uid) <= _FRESH_SECONDS

    def read_again(self, job_uid: str) -> None:
        """Have the next `of` read all of that job's objects."""
        self._read.pop(job_uid, None)
        self._attempts.pop(job_uid, None)

    def forget(self, job_uid: str, namespace: str) -> None:
        """Drop what is kept for a deleted job."""
        self._attempts.pop(job_uid, None)
        for key in self._read.pop(job_uid, {}):
            stored = self._held(key, namespace)
            if stored is not None:
                self.caches[key[0]].drop(stored["metadata"]["uid"])

    def keys(self, job_uid: str) -> list[ChildKey]:
        """The objects that were read for that job."""
        return list(self._read.get(job_uid, ()))

    async def has_changed(self, job_uid: str, namespace: str) -> bool:
        """Whether one of that job's objects differs from its known version: deleted, replaced or edited. An object that
        the server refuses to show counts as unchanged. Raises `ApiError` where the server doesn't answer."""
        for key in self.keys(job_uid):
            stored = self._held(key, namespace)
            known = stored["metadata"].get("resourceVersion") if stored is not None else None
            try:
                if await self._version(key, namespace) != known:
                    return True
            except ApiError as error:
                if error.transient:
                    raise
                log.debug("%s %s can't be read: %s", key[0].kind, key[1], error)
            if key in (read := self._read.get(job_uid, {})):
                read[key] = self._clock.monotonic()
        return False

    async def _version(self, key: ChildKey, namespace: str) -> str | None:
        resource, name = key
        found = await get_or_none(self._api, resource, name, namespace=namespace, model=_Head)
        return found.metadata.resource_version if found is not None else None

    def _held(self, key: ChildKey, namespace: str) -> Json | None:
        resource, name = key
        return self.caches[resource].by_key(f"{namespace}/{name}")

    async def _get(self, key: ChildKey, namespace: str) -> None:
        found = await self._read_one(key, namespace)
        if found is not None:
            self.caches[key[0]].put(found)
        elif (stored := self._held(key, namespace)) is not None:
            self.caches[key[0]].drop(stored["metadata"]["uid"])

    async def _read_one(self, key: ChildKey, namespace: str) -> Json | None:
        resource, name = key
        try:
            return await get_or_none(self._api, resource, name, namespace=namespace)
        except ApiError as error:
            if error.code != 403:
                raise
            return None


class ChildrenCheck:
    """Detects within a minute that a user or another client deleted or edited an object of a running job. Reads one
    object at a time, at most 50 per second; without running jobs that have such objects it reads nothing."""

    def __init__(
        self,
        children: Children,
        *,
        running: Callable[[], Iterable[tuple[str, str]]],
        changed: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """`running` yields the UID and namespace of each job whose objects are in use. `changed` is called with the UID
        of a job whose objects have to be read again."""
        self._children = children
        self._running = running
        self._changed = changed
        self._clock = clock

    async def run(self) -> None:
        """Check until cancelled. Where the server doesn't answer, the next check tries again."""
        while True:
            await self._clock.sleep(self._pause())
            try:
                await self._check_due()
            except ApiError as error:
                log.debug("objects of job plugins can't be read: %s", error)

    def _pause(self) -> float:
        """Seconds until the first of them is due, at least one tick."""
        ages = [self._children.age(uid) for uid, _ in self._running() if self._children.keys(uid)]
        return min(max(CHECK_AFTER_SECONDS - max(ages, default=0.0), _TICK_SECONDS), CHECK_AFTER_SECONDS)

    async def _check_due(self) -> None:
        reads = 0
        for uid, namespace in sorted(self._running(), key=lambda job: -self._children.age(job[0])):
            if reads >= _READS_PER_TICK or self._children.age(uid) < CHECK_AFTER_SECONDS:
                return
            reads += len(self._children.keys(uid))
            if await self._children.has_changed(uid, namespace):
                self._children.read_again(uid)
                self._changed(uid)


def _is_settled(stored: Json, job_uid: str) -> bool:
    """Whether the object is controlled by the job and isn't being deleted."""
    metadata: dict[str, Any] = stored["metadata"]
    owners: list[Json] = metadata.get("ownerReferences") or []
    mine = any(owner.get("controller") and owner.get("uid") == job_uid for owner in owners)
    return mine and not metadata.get("deletionTimestamp")
