"""Reads for one request: the unfinished work of a queue, and Jobs.

Lists are consistent reads, in pages, with only the fields that the rules need. They are valid for one answer only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from vcbatch.api.admission import Lookup
from vcbatch.api.meta import Wire
from vcbatch.api.model import Json
from vcbatch.api.queue import Queue
from vcbatch.api.resources import BATCH_JOBS, JOBS, PODGROUPS, PODS
from vcbatch.api.unfinished import QueueWork, controller_of, queue_of, work_in
from vcbatch.interfaces.api import Api

_WITH_A_NODE = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


class _Owner(Wire):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Metadata(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    owner_references: list[_Owner] | None = None


class _Spec(Wire):
    queue: str | None = None


class _State(Wire):
    phase: str = ""


class _Condition(Wire):
    type: str = ""
    status: str = ""


class _Status(Wire):
    phase: str | None = None
    running: int | None = None
    state: _State | None = None
    conditions: list[_Condition] | None = None


class _Worker(Wire):
    """The fields of a Job, PodGroup or batch/v1 Job that `work_in` reads."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _PodMetadata(_Metadata):
    annotations: dict[str, str] | None = None


class _PodSpec(Wire):
    node_name: str = ""


class _Pod(Wire):
    """The fields of a pod that `work_in` reads."""

    metadata: _PodMetadata = msgspec.field(default_factory=_PodMetadata)
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _State = msgspec.field(default_factory=_State)


async def work_of(api: Api, queue: str, leaving: Callable[[str], bool], *, with_pods: bool = False) -> QueueWork:
    """The unfinished work of the queue, as the API server has it now. Its pods are listed where no Job and no PodGroup
    is in the queue, and always with `with_pods`. Raises `ApiError`."""
    # In this order, a Job that ends between the two reads is counted rather than missed.
    groups = [_plain(group) for group in (await api.list(PODGROUPS, model=_Worker)).items]
    jobs = [_plain(job) for job in (await api.list(JOBS, model=_Worker)).items]
    batch: Sequence[Json] = ()
    if any(controller_of(group, BATCH_JOBS) for group in groups if queue_of(group) == queue):
        batch = [_plain(job) for job in (await api.list(BATCH_JOBS, model=_Worker)).items]
    work = work_in(queue, jobs=jobs, groups=groups, batch_jobs=batch, leaving=leaving)
    if work.text and not with_pods:
        return work
    pods = [_plain(pod) for pod in (await api.list(PODS, field_selector=_WITH_A_NODE, model=_Pod)).items]
    return work_in(queue, jobs=jobs, groups=groups, batch_jobs=batch, pods=pods, leaving=leaving)


def _plain(worker: _Worker | _Pod) -> Json:
    found: Json = msgspec.to_builtins(worker)
    return found


@dataclass(frozen=True, slots=True)
class Read:
    """A `Lookup` on caches and on the objects that were read for one request."""

    known: Lookup
    works: Mapping[str, QueueWork] = field(default_factory=dict[str, QueueWork])
    jobs: Mapping[tuple[str, str], Json] = field(default_factory=dict[tuple[str, str], Json])
    groups: Mapping[tuple[str, str], Json] = field(default_factory=dict[tuple[str, str], Json])

    def queue(self, name: str) -> Queue | None:
        return self.known.queue(name)

    def queues(self) -> Sequence[Queue]:
        return self.known.queues()

    def work(self, queue: str) -> QueueWork:
        return self.works.get(queue) or self.known.work(queue)

    def job(self, namespace: str, name: str) -> Json | None:
        return self.jobs.get((namespace, name))

    def pod_group(self, namespace: str, name: str) -> Json | None:
        return self.groups.get((namespace, name))

    def has_priority_class(self, name: str) -> bool:
        return self.known.has_priority_class(name)

    def has_time_zone(self, name: str) -> bool:
        return self.known.has_time_zone(name)

    def namespace_annotations(self, name: str) -> dict[str, str]:
        return self.known.namespace_annotations(name)
