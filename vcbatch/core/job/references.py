"""The objects that pods of a job name and that others have to create: claims, ConfigMaps, Secrets and the like."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from vcbatch.api import messages
from vcbatch.api.job import Job, JobPhase, TaskSpec
from vcbatch.api.pod import PodPhase
from vcbatch.api.pod_references import Reference, references_of
from vcbatch.api.resources import PERSISTENTVOLUMECLAIMS
from vcbatch.core.job.context import JobContext
from vcbatch.core.job.plan import Task
from vcbatch.core.job.view import ChildKey
from vcbatch.core.job.volumes import volumes_of

_STARTS: Final = frozenset({JobPhase.PENDING, JobPhase.RUNNING})


def wanted_references(job: Job, children: Collection[ChildKey]) -> list[Reference]:
    """The objects whose existence the `JobView` of this job must show: none where no further pod is to start. Objects
    that the job or one of its plugins creates (`children`, which are `wanted_children`) are left out, as are the claims
    of `spec.volumes`, which are checked separately."""
    status = job.status
    if job.phase not in _STARTS:
        return []
    if job.phase is JobPhase.RUNNING:
        started = status.running + status.succeeded + status.failed
        if started >= sum(task.replicas for task in job.spec.tasks):
            return []
    own = {Reference(resource, name) for resource, name in children}
    own |= {Reference(PERSISTENTVOLUMECLAIMS, volume.claim) for volume in volumes_of(job)}
    found = (one for task in job.spec.tasks if task.replicas for one in _of_task(job, task))
    return [one for one in dict.fromkeys(found) if one not in own]


def reported_missing(context: JobContext) -> str:
    """The missing objects that pods which have yet to start need; empty where all exist, or where that is unknown."""
    absent = set(context.view.absent)
    if not absent:
        return ""
    found: dict[Reference, None] = {}
    tasks: list[str] = []
    for task in context.plan.tasks.values():
        missing = [one for one in _of_task(context.view.job, task.spec) if one in absent]
        if missing and _starts_more(context, task):
            found |= dict.fromkeys(missing)
            tasks.append(task.name)
    if not found:
        return ""
    return messages.objects_missing([(one.resource.kind, one.name) for one in found], tasks=tasks)


def _of_task(job: Job, task: TaskSpec) -> list[Reference]:
    return references_of(task.pod_spec, priority_class=job.spec.priority_class_name or "")


def _starts_more(context: JobContext, task: Task) -> bool:
    """Whether the task has pods that have yet to start and don't wait for another task."""
    if task.name in context.held.waiting:
        return False
    record = context.ledger.tasks[task.name]
    members = context.roster.places[task.name].values()
    started = {member.index for member in members if member.phase != PodPhase.PENDING}
    return len(started | record.done | record.failed) < task.replicas
