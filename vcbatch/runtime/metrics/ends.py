"""How often jobs and flows finished, under the names that Volcano's controllers give these counters."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from vcbatch.api.loose import part
from vcbatch.api.phases import JobFlowPhase, JobPhase
from vcbatch.api.queue import DEFAULT
from vcbatch.interfaces.api import Json
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.metrics.meter import Meter

_NAMESPACE = "namespace"
_OF_JOBS = MappingProxyType(
    {JobPhase.COMPLETED.value: "job_completed_phase_count", JobPhase.FAILED.value: "job_failed_phase_count"}
)
_OF_FLOWS = MappingProxyType(
    {JobFlowPhase.SUCCEED.value: "jobflow_succeed_phase_count", JobFlowPhase.FAILED.value: "jobflow_failed_phase_count"}
)


class EndMetrics:
    """Counts objects that finish while it runs; those that had finished before aren't counted again after a restart.
    The series of a job are removed with it, those of a namespace with its last flow."""

    def __init__(self, meter: Meter, *, jobs: Cache[Json], flows: Cache[Json]) -> None:
        self._meter = meter
        self._flows = flows
        flows.add_index(_NAMESPACE, _namespace_of)
        jobs.listen(self._on_job)
        flows.listen(self._on_flow)

    def _on_job(self, change: Change[Json]) -> None:
        if change.old is not None and not change.keeps(_queue_of):
            for metric in _OF_JOBS.values():
                self._meter.forget(metric, **_labels(change.old))
        metric = _OF_JOBS.get(_entered(change))
        if metric is not None:
            self._meter.count(metric, 1.0, **_labels(change.current))

    def _on_flow(self, change: Change[Json]) -> None:
        (namespace,) = _namespace_of(change.current)
        metric = _OF_FLOWS.get(_entered(change))
        if metric is not None:
            self._meter.count(metric, jobflow_namespace=namespace)
        if change.new is None and not self._flows.count(_NAMESPACE, namespace):
            for each in _OF_FLOWS.values():
                self._meter.forget(each, jobflow_namespace=namespace)


def _entered(change: Change[Json]) -> str:
    """The phase that the object has just entered; empty where the phase is unchanged or the object is new or
    deleted."""
    if change.old is None or change.new is None:
        return ""
    phase = _phase_of(change.new)
    return phase if phase != _phase_of(change.old) else ""


def _phase_of(stored: Json) -> str:
    phase = part(part(stored, "status"), "state").get("phase")
    return phase if isinstance(phase, str) else ""


def _queue_of(job: Json) -> str:
    return str(part(job, "spec").get("queue") or DEFAULT)


def _labels(job: Json) -> dict[str, str]:
    return {"job_name": identity(job).key, "queue_name": _queue_of(job)}


def _namespace_of(stored: Json) -> Iterable[str]:
    return [str(part(stored, "metadata").get("namespace", ""))]
