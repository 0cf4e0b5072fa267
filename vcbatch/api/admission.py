"""Admission of every kind in one call each way: `mutate` fills in, `review` judges.

Both are pure. A webhook server wraps them in AdmissionReview; the embedded API server calls them directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from vcbatch.api import names, validate
from vcbatch.api.cronjob import CronJob
from vcbatch.api.defaults import default_job, default_podgroup, default_queue
from vcbatch.api.hypernode import HyperNode
from vcbatch.api.job import Job
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.loose import part
from vcbatch.api.model import Json, MalformedObject
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import Queue
from vcbatch.api.resource_groups import ResourceGroup, default_pod
from vcbatch.api.resources import CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, JOBTEMPLATES, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.api.supported import THIS_VERSION, Unsupported
from vcbatch.api.validate import DEFAULT_RULES, Fault, QueueRules

MUTATED: Final = (JOBS, QUEUES, PODGROUPS, PODS)
"""What `mutate` has defaults for, on CREATE."""

REVIEWED: Final = (JOBS, QUEUES, PODGROUPS, CRONJOBS, JOBFLOWS, JOBTEMPLATES, HYPERNODES, PODS)
"""What `review` has rules for."""


class Operation(StrEnum):
    """`request.operation` of an AdmissionReview."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Lookup(validate.Lookup, Protocol):
    """The world as `mutate` and `review` have to know it."""

    def namespace_annotations(self, name: str) -> dict[str, str]:
        """Annotations of a namespace; empty where it isn't known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`schedulers`: the names under which pods come to us, the first for jobs that name none. `resource_groups`: where
    new pods are sent, the first that takes one."""

    schedulers: tuple[str, ...] = (names.DEFAULT_SCHEDULER,)
    queues: QueueRules = DEFAULT_RULES
    unsupported: Unsupported = THIS_VERSION
    resource_groups: tuple[ResourceGroup, ...] = ()


DEFAULT_SETTINGS: Final = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One write. `object` is absent on DELETE, `old` on CREATE; both carry their defaults in `review`."""

    resource: Resource
    operation: Operation
    name: str
    namespace: str = ""
    object: Json | None = None
    old: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """No faults: allowed. `warnings` are shown to the user either way."""

    faults: Sequence[Fault] = ()
    warnings: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def allowed(self) -> bool:
        return not self.faults

    @property
    def message(self) -> str:
        """All faults in one text."""
        return validate.sentence(self.faults)


def mutate(request: Request, lookup: Lookup, settings: Settings = DEFAULT_SETTINGS) -> Json | None:
    """The new object with its defaults (which may change nothing), or None where nothing is given to default.

    Jobs get them on UPDATE too, unlike Volcano's: a client that applies the same file again sends the tasks without
    their defaults, which would otherwise be a forbidden change.
    """
    given = request.object
    if given is None or request.operation is Operation.DELETE:
        return given
    if request.resource == JOBS:
        return default_job(given, scheduler_name=settings.schedulers[0])
    if request.operation is not Operation.CREATE:
        return given
    if request.resource == PODS:
        return default_pod(given, settings.resource_groups, namespace=request.namespace)
    if request.resource == QUEUES:
        return default_queue(given)
    if request.resource == PODGROUPS:
        return default_podgroup(given, namespace_annotations=lookup.namespace_annotations(request.namespace))
    return given


def review(request: Request, lookup: Lookup, settings: Settings = DEFAULT_SETTINGS) -> Verdict:
    """Whether the write may happen. Writes of `status` aren't reviewed and must not be brought here."""
    try:
        faults = _faults(request, lookup, settings)
    except MalformedObject as error:
        faults = [Fault("", str(error))]
    return Verdict(faults=faults, warnings=_warnings(request, settings))


def _warnings(request: Request, settings: Settings) -> tuple[str, ...]:
    kind = request.resource.kind
    if request.operation is Operation.CREATE and kind in settings.unsupported.kinds:
        return (f"{kind} {request.name} is stored, but this version of vcbatch doesn't act on it",)
    return ()


def _faults(request: Request, lookup: Lookup, settings: Settings) -> list[Fault]:
    resource, given = request.resource, request.object
    if request.operation is Operation.DELETE:
        if resource == QUEUES:
            return validate.queue_deletion_faults(request.name, lookup, rules=settings.queues)
        return []
    if given is None:
        return [Fault("", f"{request.operation} of {resource.kind} {request.name} carries no object")]
    if resource == JOBS:
        return _job_faults(given, request.old, lookup, settings)
    if resource == QUEUES:
        old = Queue.parse(request.old) if request.old is not None else None
        return validate.queue_faults(Queue.parse(given), lookup, old=old, rules=settings.queues)
    if resource == PODGROUPS and request.operation is Operation.CREATE:
        return validate.podgroup_faults(PodGroup.parse(given), lookup)
    if resource == CRONJOBS:
        return validate.cronjob_faults(CronJob.parse(given), lookup, unsupported=settings.unsupported)
    if resource == JOBFLOWS:
        return validate.jobflow_faults(JobFlow.parse(given))
    if resource == HYPERNODES:
        return validate.hypernode_faults(HyperNode.parse(given))
    if resource == PODS and request.operation is Operation.CREATE:
        return _pod_faults(given, settings)
    return []


def _job_faults(given: Json, old: Json | None, lookup: Lookup, settings: Settings) -> list[Fault]:
    if old is not None:
        return validate.job_update_faults(Job.parse(given), Job.parse(old))
    return validate.job_faults(Job.parse(given), lookup, unsupported=settings.unsupported)


def _pod_faults(pod: Json, settings: Settings) -> list[Fault]:
    if part(pod, "spec").get("schedulerName") not in settings.schedulers:
        return []
    return validate.pod_faults(part(part(pod, "metadata"), "annotations"))
