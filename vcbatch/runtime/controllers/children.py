"""The objects beside pods that a job's plugins keep: read at a job's first reconcile, then known from our writes.

They are Services, ConfigMaps, Secrets and the like, of which a cluster has thousands that are not ours. Watching them
would take the right to list every Secret, and more work than everything else the controllers do. Instead they are read
again before pods are created that need them, and compared from time to time (`ChildrenCheck`).
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
"""A running job's objects are compared with the server's after so long."""
_FRESH_SECONDS: Final = 10.0
_TICK_SECONDS: Final = 5.0
_READS_PER_TICK: Final = 250
"""50 reads a second at most: 3,000 objects of running jobs in a minute."""


class _Head(msgspec.Struct):
    """Of an object, what tells one version from another."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Children:
    """The plugin objects of all jobs. Its caches are to be the applier's, so that every write's answer is in them."""

    def __init__(self, api: Api, *, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self.caches: dict[Resource, Cache[Json]] = {resource: Cache() for resource in CHILD_RESOURCES}
        self._read: dict[str, dict[ChildKey, float]] = {}  # job UID -> when each was read
        self._attempts: dict[str, tuple[int, int]] = {}  # job UID -> the attempt in which they were read

    async def of(self, job_uid: str, namespace: str, wanted: Sequence[ChildKey]) -> dict[ChildKey, Json]:
        """Those of `wanted` that exist, as they are stored. One that isn't the job's, or is being deleted, is read
        again each time, since nobody announces that its name is free. What may not be read counts as absent: who then
        tries to create it is told why. Raises `ApiError` where the server doesn't say."""
        read = self._read.setdefault(job_uid, {})
        found: dict[ChildKey, Json] = {}
        for key in wanted:
            if key[0] not in self.caches:  # of a plugin of the user's; our writes of it aren't remembered
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
        for key in read.keys() - set(wanted):  # its plugins have changed
            del read[key]
        return found

    def age(self, job_uid: str) -> float:
        """How many seconds ago that job's objects were read or compared; 0 for a job without any."""
        read = self._read.get(job_uid)
        return self._clock.monotonic() - min(read.values()) if read else 0.0

    def is_fresh(self, job_uid: str, *, attempt: tuple[int, int]) -> bool:
        """Whether that job's objects were read or compared lately, and in this attempt of the job."""
        return self._attempts.setdefault(job_uid, attempt) == attempt and self.age(job_uid) <= _FRESH_SECONDS

    def read_again(self, job_uid: str) -> None:
        """Have the next `of` read all of that job's objects."""
        self._read.pop(job_uid, None)
        self._attempts.pop(job_uid, None)

    def forget(self, job_uid: str, namespace: str) -> None:
        """The job is gone."""
        self._attempts.pop(job_uid, None)
        for key in self._read.pop(job_uid, {}):
            stored = self._held(key, namespace)
            if stored is not None:
                self.caches[key[0]].drop(stored["metadata"]["uid"])

    def keys(self, job_uid: str) -> list[ChildKey]:
        """The objects that were read for that job."""
        return list(self._read.get(job_uid, ()))

    async def has_changed(self, job_uid: str, namespace: str) -> bool:
        """Whether one of that job's objects isn't as it is known any more: deleted, replaced or edited. One that the
        server refuses to show counts as unchanged. Raises `ApiError` where it doesn't answer."""
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
    """Finds out within a minute that somebody deleted or edited an object of a running job. Reads one object at a time,
    50 a second at most; without running jobs that have such objects it reads nothing."""

    def __init__(
        self,
        children: Children,
        *,
        running: Callable[[], Iterable[tuple[str, str]]],
        changed: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """`running`: UID and namespace of each job whose objects are in use. `changed` is called with the UID of one
        whose objects are to be read again."""
        self._children = children
        self._running = running
        self._changed = changed
        self._clock = clock

    async def run(self) -> None:
        """Check until cancelled. Where the server doesn't answer, the next turn tries again."""
        while True:
            await self._clock.sleep(self._pause())
            try:
                await self._check_due()
            except ApiError as error:
                log.debug("objects of job plugins can't be read: %s", error)

    def _pause(self) -> float:
        """Until the first of them is due, and no shorter than one tick."""
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
    """Whether it is the job's and stays."""
    metadata: dict[str, Any] = stored["metadata"]
    owners: list[Json] = metadata.get("ownerReferences") or []
    mine = any(owner.get("controller") and owner.get("uid") == job_uid for owner in owners)
    return mine and not metadata.get("deletionTimestamp")
