"""Progress of the jobs that carry a trace context: their pods exist, all of them run.

Derived from the counts in the jobs' status, so that no pod is read for it.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime

from vcbatch.api.loose import Json, listed, part
from vcbatch.api.timestamps import parse_time
from vcbatch.api.traceparent import traceparent_of
from vcbatch.hosting.supervise import never
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.tracing.tracer import Tracer

_MOST_UNDERWAY = 10_000
_EXISTING = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_STARTED = ("running", "succeeded")


class JobSpans:
    """The spans `pods.created` and `gang.running` of each job, once for each observed attempt."""

    def __init__(self, tracer: Tracer, jobs: Cache[Json], *, clock: Clock) -> None:
        self._tracer = tracer
        self._jobs = jobs
        self._clock = clock
        self._created: OrderedDict[str, datetime] = OrderedDict()  # job UID -> time when all its pods existed

    async def run(self) -> None:
        """Record until cancelled. Earlier progress isn't recorded: its time isn't known."""
        self._jobs.listen(self._seen)
        await never()

    def _seen(self, change: Change[Json]) -> None:
        job = change.new
        metadata = part(job or change.old or {}, "metadata")
        parent = traceparent_of(part(metadata, "annotations"))
        if not parent:
            return
        uid = str(metadata.get("uid") or "")
        if job is None:
            self._created.pop(uid, None)
            return
        wanted = _replicas(job)
        if not wanted:
            return
        before, now = change.old or {}, self._clock.now()
        attributes = {
            "k8s.namespace.name": str(metadata.get("namespace") or ""),
            "vcbatch.job.name": str(metadata.get("name") or ""),
            "vcbatch.job.uid": uid,
            "vcbatch.pods": wanted,
        }
        if _count(before, _EXISTING) < wanted <= _count(job, _EXISTING):
            begin = min(_time(metadata.get("creationTimestamp")) or now, now)
            self._tracer.record("pods.created", begin=begin, end=now, parent=parent, attributes=attributes)
            self._created[uid] = now
            if len(self._created) > _MOST_UNDERWAY:
                self._created.popitem(last=False)
        if _count(before, _STARTED) < wanted <= _count(job, _STARTED):
            begin = self._created.pop(uid, now)
            self._tracer.record("gang.running", begin=begin, end=now, parent=parent, attributes=attributes)


def _replicas(job: Json) -> int:
    tasks = listed(part(job, "spec"), "tasks")
    return sum(_number(task.get("replicas", 1)) for task in tasks if isinstance(task, dict))


def _count(job: Json, kinds: tuple[str, ...]) -> int:
    status = part(job, "status")
    return sum(_number(status.get(kind)) for kind in kinds)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _time(value: object) -> datetime | None:
    try:
        return parse_time(value) if isinstance(value, str) else None
    except ValueError:
        return None
