"""Jobs by queue and phase, and the pods and restarts of each, as counted in their statuses."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import Final, NamedTuple

from vcbatch.api.loose import part
from vcbatch.api.phases import JobPhase
from vcbatch.api.queue import DEFAULT
from vcbatch.interfaces.api import Json
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.metrics.meter import Meter

_ENDS: Final = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.ABORTED, JobPhase.TERMINATED})
_PODS: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


class _Seen(NamedTuple):
    """The exported values of a job. `pods` only where it has some, or had some since it was created."""

    queue: str
    phase: str
    pods: tuple[int, ...]
    restarts: int


class JobMetrics:
    """Watches jobs from the first list on. The series of a job are removed with it; those of a queue with the queue,
    or, if they count existing jobs, with its last job. A job that had ended before isn't counted as finished."""

    def __init__(self, meter: Meter, *, jobs: Cache[Json], queues: Cache[Json]) -> None:
        self._meter = meter
        self._counts: Counter[tuple[str, str]] = Counter()
        self._pods: dict[str, set[str]] = {}
        """UID -> the phases that are exported."""
        self._finished: dict[str, set[str]] = {}
        jobs.listen(self._on_job)
        queues.listen(self._on_queue)

    def _on_job(self, change: Change[Json]) -> None:
        before = None if change.old is None else _seen(change.old)
        now = None if change.new is None else _seen(change.new)
        if before == now:
            return
        self._count(before, now)
        metadata = part(change.current, "metadata")
        uid = str(metadata.get("uid") or "")
        labels = {"job_namespace": str(metadata.get("namespace") or ""), "job_name": str(metadata.get("name") or "")}
        if now is None:
            for phase in self._pods.pop(uid, ()):
                self._meter.forget("job_pods", **labels, phase=phase)
            self._meter.forget("job_restarts", **labels)
            return
        if before is None or before.restarts != now.restarts:
            self._meter.gauge("job_restarts", now.restarts, **labels)
        exported = self._pods.setdefault(uid, set())
        for phase, count in zip(_PODS, now.pods, strict=True):
            if count or phase in exported:
                exported.add(phase)
                self._meter.gauge("job_pods", count, **labels, phase=phase)

    def _count(self, before: _Seen | None, now: _Seen | None) -> None:
        left = None if before is None else before[:2]
        entered = None if now is None else now[:2]
        if left == entered:
            return
        for key, step in ((left, -1), (entered, 1)):
            if key is not None:
                self._counts[key] += step
        for queue, phase in filter(None, (left, entered)):
            if self._counts[queue, phase]:
                self._meter.gauge("jobs", self._counts[queue, phase], queue=queue, phase=phase)
            else:
                del self._counts[queue, phase]
                self._meter.forget("jobs", queue=queue, phase=phase)
        if before is not None and now is not None and now.phase in _ENDS and before.phase != now.phase:
            self._finished.setdefault(now.queue, set()).add(now.phase)
            self._meter.count("jobs_finished", queue=now.queue, phase=now.phase)

    def _on_queue(self, change: Change[Json]) -> None:
        name = str(part(change.current, "metadata").get("name") or "")
        if change.new is None:
            for phase in self._finished.pop(name, ()):
                self._meter.forget("jobs_finished", queue=name, phase=phase)


_KNOWN: Final = MappingProxyType({phase.value: phase.value for phase in JobPhase})


def _seen(job: Json) -> _Seen:
    status = part(job, "status")
    phase = part(status, "state").get("phase")
    return _Seen(
        queue=str(part(job, "spec").get("queue") or DEFAULT),
        phase=_KNOWN.get(phase, "Unknown") if isinstance(phase, str) and phase else JobPhase.PENDING.value,
        pods=tuple(_number(status.get(phase)) for phase in _PODS),
        restarts=_number(status.get("retryCount")),
    )


def _number(given: object) -> int:
    return given if isinstance(given, int) else 0
