"""The objects that rules read, from caches that follow the API server.

A cache may be a moment behind, so no rejection is based on a cache alone: before an object is rejected, the objects
that it names are read once from the API server and the rules are evaluated again (`World.refresh`). The same applies to
an approval that depends on relations between queues (`World.changes_tree`). Jobs and PodGroups aren't cached: they are
read for each request whose rules need them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from vcbatch.api import loose, names
from vcbatch.api.admission import Lookup, Operation, Request, group_of, queues_of_pod, resizes
from vcbatch.api.model import Json, MalformedObject
from vcbatch.api.queue import ROOT, Queue
from vcbatch.api.resources import (
    CRONJOBS,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    NAMESPACES,
    PODGROUPS,
    PRIORITYCLASSES,
    QUEUES,
    Resource,
)
from vcbatch.api.submission import submitted
from vcbatch.api.unfinished import QueueWork, being_deleted
from vcbatch.interfaces.api import Api, ApiError, get_or_none
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.time_zones import time_zones
from webhooks.work import Read, work_of

log = logging.getLogger(__name__)

_LOOKS_UP = frozenset({JOBS, CRONJOBS, JOBFLOWS, JOBTEMPLATES, QUEUES, PODGROUPS})
_MOST_READS = 16


class World:
    """The rules' `Lookup`. Empty until `synced` returns."""

    def __init__(self, api: Api, informers: Informers, *, with_pods: bool = False) -> None:
        """`with_pods`: pods are listed for each queue that is deleted, also where Jobs or PodGroups already prevent
        it."""
        self._api = api
        self._with_pods = with_pods
        self._informers = informers
        self._caches: dict[Resource, Cache[Any]] = {
            resource: informers.follow(resource) for resource in (QUEUES, PRIORITYCLASSES, NAMESPACES)
        }
        self._queues: dict[str, Queue] = {}
        self._caches[QUEUES].listen(self._on_queue)
        for cache in self._caches.values():
            cache.listen(self._on_change)
        self.version = 0
        self.complete = False

    async def synced(self) -> None:
        """Return once every cache has its first list."""
        await self._informers.synced()
        self.complete = True

    def needed(self, resource: Resource) -> bool:
        """Whether rules of that resource read any other object."""
        return resource in _LOOKS_UP

    # Lookup

    def queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

    def queues(self) -> Sequence[Queue]:
        return list(self._queues.values())

    def has_priority_class(self, name: str) -> bool:
        return name in names.SYSTEM_PRIORITY_CLASSES or self._caches[PRIORITYCLASSES].by_key(name) is not None

    def has_time_zone(self, name: str) -> bool:
        return name in time_zones()

    def namespace_annotations(self, name: str) -> dict[str, str]:
        stored = self._caches[NAMESPACES].by_key(name)
        return loose.part(loose.part(stored, "metadata"), "annotations") if stored is not None else {}

    # Freshness

    def changes_tree(self, request: Request) -> bool:
        """Whether the request changes the hierarchy of queues: its rules add up siblings and read all ancestors and
        descendants, some of which may just have been created or moved. Or whether it resizes a pod: its rules read the
        usage of the queue of the pod's PodGroup."""
        if resizes(request):
            return True
        if request.resource != QUEUES:
            return False
        new, old = request.object or {}, request.old or {}
        if request.operation is Operation.UPDATE:
            return loose.part(new, "spec") != loose.part(old, "spec") or _hierarchy(new) != _hierarchy(old)
        nested = loose.part(new, "spec").get("parent") not in (None, "", ROOT) or _hierarchy(new) is not None
        return nested or request.operation is Operation.DELETE

    def lacks(self, request: Request) -> bool:
        """Whether a PriorityClass that the request names isn't in the cache: it may just have been created. A missing
        queue rejects the request, and is read again in any case."""
        classes = (name for resource, name in _named(request) if resource == PRIORITYCLASSES)
        return request.operation is not Operation.DELETE and not all(map(self.has_priority_class, classes))

    def work(self, queue: str) -> QueueWork:
        """Always empty: `refresh` reads it."""
        return QueueWork()

    def job(self, namespace: str, name: str) -> Json | None:
        """Always None: `refresh` reads it."""
        return None

    def pod_group(self, namespace: str, name: str) -> Json | None:
        """Always None: `refresh` reads it."""
        return None

    def is_leaving(self, namespace: str) -> bool:
        """Whether the namespace is being deleted."""
        return being_deleted(self._caches[NAMESPACES].by_key(namespace) or {})

    async def refresh(self, request: Request) -> Lookup:
        """Read the objects that the request names, all queues for a write of a queue, and the work in a queue that is
        deleted or gets a child queue. Raises `ApiError` where a read fails."""
        if request.resource == QUEUES:
            self._caches[QUEUES].replace(await self._api.list(QUEUES))
            queue = _emptied(request)
            if not queue:
                return self
            work = await work_of(self._api, queue, self.is_leaving, with_pods=self._with_pods)
            return Read(self, works={queue: work})
        if resizes(request):
            return await self._around_pod(request)
        named = sorted(_named(request), key=_order)
        around = sorted(
            {(QUEUES, name) for resource, queue in named if resource == QUEUES for name in self._near(queue)}
        )
        wanted = list(dict.fromkeys([*named, *around]))[:_MOST_READS]
        jobs = [_job_of(request)] if request.resource == PODGROUPS else []
        *_, found = await asyncio.gather(*(self._read(resource, name) for resource, name in wanted), self._jobs(jobs))
        return Read(self, jobs=found) if found else self

    async def _around_pod(self, request: Request) -> Lookup:
        """Read the PodGroup of a pod, its queue and that queue's ancestors."""
        name = group_of(request)
        group = await get_or_none(self._api, PODGROUPS, name, namespace=request.namespace) if _plain(name) else None
        read = Read(self, groups={(request.namespace, name): group} if group is not None else {})
        done: set[str] = set()
        while len(done) < _MOST_READS:  # each queue that was read names its parent
            queue = next((one for one in queues_of_pod(request, read) if one not in done and _plain(one)), None)
            if queue is None:
                break
            done.add(queue)
            await self._read(QUEUES, queue)
        return read

    def _near(self, queue: str) -> set[str]:
        """The ancestors of this queue, whose annotations apply to it, and its children, since it accepts no jobs if it
        has any."""
        near = {other.name for other in self._queues.values() if other.spec.parent == queue}
        above = self._queues.get(queue)
        while above is not None and above.spec.parent not in (*near, "", ROOT, queue):
            near.add(above.spec.parent)
            above = self._queues.get(above.spec.parent)
        return near

    async def _jobs(self, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Json]:
        """The existing Jobs of these namespaces and names."""
        found = {(namespace, name): await get_or_none(self._api, JOBS, name, namespace=namespace)
                 for namespace, name in names if _plain(name)}  # fmt: skip
        return {key: job for key, job in found.items() if job is not None}

    async def _read(self, resource: Resource, name: str) -> None:
        cache = self._caches[resource]
        try:
            cache.put(await self._api.get(resource, name))
        except ApiError as error:
            if not error.not_found:
                raise
            gone = cache.by_key(name)
            if gone is not None:
                cache.discard(gone["metadata"]["uid"])

    def _on_change(self, change: Change[Any]) -> None:
        self.version += 1

    def _on_queue(self, change: Change[Json]) -> None:
        name = loose.part(change.current, "metadata").get("name", "")
        self._queues.pop(name, None)
        if change.new is None:
            return
        try:
            self._queues[name] = Queue.parse(change.new)
        except MalformedObject as error:
            log.warning("queue %s can't be read, so jobs can't be submitted to it: %s", name, error)


def _named(request: Request) -> set[tuple[Resource, str]]:
    """The objects that the request's object names."""
    spec = loose.part(request.object or {}, "spec")
    if request.resource == PODGROUPS:
        named = [(QUEUES, spec.get("queue"))]
    elif request.resource in (JOBFLOWS, JOBTEMPLATES):
        named = [(QUEUES, queue) for _, queue in submitted(request.resource, request.object, ())]
    else:
        job = spec if request.resource == JOBS else loose.part(loose.part(spec, "jobTemplate"), "spec")
        named = [(QUEUES, job.get("queue")), (PRIORITYCLASSES, job.get("priorityClassName"))]
        for task in loose.listed(job, "tasks"):
            pod = loose.part(loose.part(task, "template"), "spec") if isinstance(task, dict) else {}
            named.append((PRIORITYCLASSES, pod.get("priorityClassName")))
    return {(resource, name) for resource, name in named if isinstance(name, str) and _plain(name) and name != ROOT}


def _emptied(request: Request) -> str:
    """The queue that must have no work of its own for the request to be allowed; empty where there is none."""
    if request.operation is Operation.DELETE:
        return request.name
    new, old = (loose.part(each or {}, "spec").get("parent") for each in (request.object, request.old))
    return new if isinstance(new, str) and new not in ("", ROOT, old, request.name) else ""


def _job_of(request: Request) -> tuple[str, str]:
    """Namespace and name of the Job that controls the PodGroup; an empty name where none does."""
    for owner in loose.listed(loose.part(request.object or {}, "metadata"), "ownerReferences"):
        if isinstance(owner, dict) and owner.get("controller") and owner.get("kind") == JOBS.kind:
            return request.namespace, str(owner.get("name") or "")
    return request.namespace, ""


def _hierarchy(queue: Json) -> object:
    return loose.part(loose.part(queue, "metadata"), "annotations").get(names.HIERARCHY)


def _order(item: tuple[Resource, str]) -> tuple[str, str]:
    return item[0].plural, item[1]


def _plain(name: str) -> bool:
    """Whether the name may be part of a URL; any other name can't be that of an object."""
    return bool(name) and len(name) <= 253 and all(char.isalnum() or char in "-._" for char in name)
