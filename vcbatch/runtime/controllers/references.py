"""Whether the objects that pods of jobs refer to exist, as far as the controllers have permission to read them.

Claims and priority classes are watched. ConfigMaps, Secrets and service accounts are not (see `children`): each is read
when a job that names it waits, and again after some seconds as long as it is missing. Secrets and service accounts are
read only where a review says that the controllers may: by default they have no such permission, and a refused request
would appear as an attempt in the audit log of the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from vcbatch.api.loose import part
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.model import Json
from vcbatch.api.pod_references import Reference
from vcbatch.api.resources import (
    ACCESS_REVIEWS,
    PERSISTENTVOLUMECLAIMS,
    PRIORITYCLASSES,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.api.storage import Claim
from vcbatch.interfaces.api import Api, ApiError, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.claims import Claims

K = TypeVar("K")
V = TypeVar("V")

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 1.0
"""An object, or its event, may arrive this long after the job before it counts as missing."""
RECHECK_SECONDS: Final = 10.0
_THERE_SECONDS: Final = 60.0
"""An object that was found is taken to exist for this long."""
_REVIEW_SECONDS: Final = 300.0
_MOST_REMEMBERED: Final = 20_000
_REVIEWED: Final = frozenset({SECRETS, SERVICEACCOUNTS})


class _Head(msgspec.Struct):
    """An object reduced to its existence."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class References:
    """Which referenced objects exist, by namespace and reference."""

    def __init__(self, api: Api, claims: Claims, priority_classes: Cache[PriorityClassView], *, clock: Clock) -> None:
        self._api = api
        self._claims = claims
        self._priority_classes = priority_classes
        self._clock = clock
        self._there: dict[tuple[str, Reference], float] = {}  # time when it was last found
        self._asked: dict[tuple[str, Reference], tuple[float, float]] = {}  # missing: first and last read
        self._lacks: dict[str, float] = {}  # job UID -> since when a reference is missing
        self._allowed: dict[tuple[str, Resource], tuple[float, bool]] = {}

    async def absent(
        self, job_uid: str, namespace: str, wanted: Iterable[Reference]
    ) -> tuple[frozenset[Reference], float | None]:
        """Those of `wanted` that don't exist, and the seconds after which to read them again; None where all exist.
        Objects that may not be read, or whose read fails, count as existing. The grace period is per job and not per
        object, so that all missing objects are reported together."""
        began = self._clock.monotonic()
        missing: set[Reference] = set()
        for reference in wanted:
            if not await self._is_there(("" if not reference.resource.namespaced else namespace, reference)):
                missing.add(reference)
        if not missing:
            self._lacks.pop(job_uid, None)
            return frozenset(), None
        lasted = began - _bounded(self._lacks).setdefault(job_uid, began)
        if lasted < GRACE_SECONDS:
            return frozenset(), GRACE_SECONDS - lasted
        return frozenset(missing), RECHECK_SECONDS

    async def _is_there(self, key: tuple[str, Reference]) -> bool:
        namespace, (resource, name) = key
        now = self._clock.monotonic()
        if resource == PRIORITYCLASSES:
            return self._priority_classes.by_key(name) is not None
        if resource == PERSISTENTVOLUMECLAIMS and self._claims.cache.by_key(f"{namespace}/{name}") is not None:
            return True
        if resource != PERSISTENTVOLUMECLAIMS and now - self._there.get(key, -_THERE_SECONDS) < _THERE_SECONDS:
            return True
        first, last = self._asked.get(key, (now, -RECHECK_SECONDS))
        # Half the interval to the next reconcile, so that timing differences don't make this reconcile skip the read.
        if now - last < (GRACE_SECONDS if now - first < RECHECK_SECONDS else RECHECK_SECONDS) / 2:
            return False
        if resource in _REVIEWED and not await self._may_read(namespace, resource):
            return True
        model = Claim if resource == PERSISTENTVOLUMECLAIMS else _Head
        try:
            found = await get_or_none(self._api, resource, name, namespace=namespace, model=model)
        except ApiError as error:
            log.debug("%s %s/%s can't be read: %s", resource.kind, namespace, name, error)
            return True
        if found is None:
            _bounded(self._asked)[key] = first, now
            return False
        self._asked.pop(key, None)
        if isinstance(found, Claim):
            self._claims.cache.put(found)
        else:
            _bounded(self._there)[key] = now
        return True

    async def _may_read(self, namespace: str, resource: Resource) -> bool:
        now = self._clock.monotonic()
        known = self._allowed.get((namespace, resource))
        if known is not None and now - known[0] < _REVIEW_SECONDS:
            return known[1]
        attributes = {"group": resource.group, "resource": resource.plural, "verb": "get", "namespace": namespace}
        body: Json = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind}
        try:
            answer = await self._api.create(ACCESS_REVIEWS, {**body, "spec": {"resourceAttributes": attributes}})
        except ApiError as error:
            log.debug("whether %s can be read in %s isn't known: %s", resource.plural, namespace, error)
            answer = {}
        allowed = part(answer, "status").get("allowed") is True
        _bounded(self._allowed)[namespace, resource] = now, allowed
        return allowed


def _bounded(known: dict[K, V]) -> dict[K, V]:
    """`known`, without its oldest half where it exceeds the limit."""
    if len(known) >= _MOST_REMEMBERED:
        for key in list(known)[: _MOST_REMEMBERED // 2]:
            del known[key]
    return known
