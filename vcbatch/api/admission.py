"""Admission of every kind: `mutate` sets defaults, `review` validates.

Both are pure. A webhook server wraps them in AdmissionReview; the embedded API server calls them directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Protocol

import msgspec

from vcbatch.api import names, validate
from vcbatch.api.cronjob import CronJob
from vcbatch.api.defaults import default_job, default_podgroup, default_queue, json_patch
from vcbatch.api.host_lists import left_out
from vcbatch.api.hypernode import HyperNode
from vcbatch.api.job import Job
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.jobtemplate import JobTemplate
from vcbatch.api.loose import part
from vcbatch.api.model import Json, MalformedObject
from vcbatch.api.names import Plugin
from vcbatch.api.pod import Pod
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import DEFAULT, ROOT, Queue
from vcbatch.api.queue_gate import gated_pod
from vcbatch.api.resource_groups import ResourceGroup, default_pod
from vcbatch.api.resources import (
    COMMANDS,
    CRONJOBS,
    HYPERNODES,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    PODGROUPS,
    PODS,
    QUEUES,
    Resource,
)
from vcbatch.api.submission import submitted
from vcbatch.api.supported import THIS_VERSION, Unsupported
from vcbatch.api.validate import DEFAULT_RULES, QueueRules, ValidationError

MOST_QUEUES: Final = 100
"""The maximum of queues to which one write may newly submit: the API server is queried for the user's permission on
each."""


class Operation(StrEnum):
    """`request.operation` of an AdmissionReview."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Lookup(validate.WorkLookup, Protocol):
    """The objects of the cluster that `mutate` and `review` read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`schedulers`: the scheduler names whose pods are ours, the first for jobs that name none. `resource_groups`:
    where new pods are sent, the first that takes one. `queue_gates`: whether pods with the annotation get a scheduling
    gate until their queue has capacity."""

    schedulers: tuple[str, ...] = (names.DEFAULT_SCHEDULER,)
    queues: QueueRules = DEFAULT_RULES
    unsupported: Unsupported = THIS_VERSION
    resource_groups: tuple[ResourceGroup, ...] = ()
    queue_gates: bool = False
    controllers: str = names.CONTROLLERS_USER
    """The user of the controllers, who create jobs for other users."""


DEFAULT_SETTINGS: Final = Settings()

RESIZE: Final = "resize"
"""The subresource of pods that changes the resources of their containers in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user of the request, as the API server authenticated them."""

    name: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


NOBODY: Final = User()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One write request. `object` is None on DELETE, `old` on CREATE; both have their defaults in `review`."""

    resource: Resource
    operation: Operation
    name: str
    namespace: str = ""
    object: Json | None = None
    old: Json | None = None
    user: User = NOBODY
    subresource: str = ""
    """The subresource that is written; empty for the whole object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The write is allowed if there are no errors. `warnings` are about an allowed write, and shown to the user."""

    errors: Sequence[ValidationError] = ()
    warnings: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def allowed(self) -> bool:
        return not self.errors

    @property
    def message(self) -> str:
        """All errors in one text."""
        return validate.sentence(self.errors)


def mutate(request: Request, lookup: Lookup, settings: Settings = DEFAULT_SETTINGS) -> Json | None:
    """The new object with its defaults (which may be unchanged), or None for kinds without defaults.

    Jobs get defaults on UPDATE too, unlike Volcano's: a client that applies the same file again sends the tasks without
    their defaults, which would otherwise be a forbidden change.
    """
    given = request.object
    if given is None or request.operation is Operation.DELETE:
        return given
    if request.resource == JOBS:
        filled = default_job(given, scheduler_name=settings.schedulers[0])
        return _in_namespace_queue(_of_user(filled, request, settings), request, lookup)
    if request.operation is not Operation.CREATE:
        return given
    if request.resource == PODS:
        pod = default_pod(given, settings.resource_groups, namespace=request.namespace)
        return gated_pod(pod, settings.schedulers) if settings.queue_gates else pod
    if request.resource == QUEUES:
        return default_queue(given)
    if request.resource == PODGROUPS:
        return default_podgroup(given, namespace_annotations=lookup.namespace_annotations(request.namespace))
    return given


def _in_namespace_queue(job: Json, request: Request, lookup: Lookup) -> Json:
    """Put a new job of the default queue into the queue of its namespace, as Volcano does with its PodGroup. Whether
    its author named `default` is unknown, since the CRD sets it before. An update that names no queue keeps the
    queue."""
    wanted = lookup.namespace_annotations(request.namespace).get(names.SCHEDULING_QUEUE_NAME)
    spec = part(job, "spec")
    stays = request.old is None or part(request.old, "spec").get("queue") == wanted
    return {**job, "spec": {**spec, "queue": wanted}} if wanted and spec.get("queue") == DEFAULT and stays else job


def _of_user(given: Json, request: Request, settings: Settings) -> Json:
    """Name the user who created the object in its annotation, for accounting. Only the controllers may name another
    user, for whom they create a job; and no update changes the name."""
    metadata = part(given, "metadata")
    annotations = part(metadata, "annotations")
    if request.old is not None:
        user = part(part(request.old, "metadata"), "annotations").get(names.USER)
    elif request.user.name == settings.controllers and annotations.get(names.USER):
        return given
    else:
        user = request.user.name or annotations.get(names.USER)
    if annotations.get(names.USER) == user:
        return given
    changed = {key: value for key, value in annotations.items() if key != names.USER}
    if user is not None:
        changed[names.USER] = user
    return {**given, "metadata": {**metadata, "annotations": changed}}


def mutation_warnings(request: Request, filled: Json | None) -> Iterator[str]:
    """Warnings about changes by `mutate` that the author may not expect, and about the object as it was written, which
    its defaults hide. `filled` is the result of `mutate`. The warnings of `review` are about that."""
    yield from _written_warnings(request)
    yield from _user_warnings(request, filled)
    if request.resource == JOBS and request.operation is Operation.CREATE:
        given = part(request.object or {}, "spec").get("queue")
        queue = part(filled or {}, "spec").get("queue")
        if given == DEFAULT and queue != DEFAULT:
            why = f"the annotation {names.SCHEDULING_QUEUE_NAME} of namespace {request.namespace}"
            yield f"spec.queue: {DEFAULT} becomes {queue}, by {why}"


def _user_warnings(request: Request, filled: Json | None) -> Iterator[str]:
    given, user = (
        part(part(each or {}, "metadata"), "annotations").get(names.USER) for each in (request.object, filled)
    )
    if given and given != user:
        place = f"metadata.annotations[{names.USER}]"
        yield (
            f"{place}: becomes {user}, the user who created it" if user else f"{place}: removed; only admission sets it"
        )


def _written_warnings(request: Request) -> Iterator[str]:
    given, old = request.object, request.old
    if given is None or request.operation is Operation.DELETE:
        return
    spec, stored = part(given, "spec"), part(old, "spec") if old is not None else None
    if spec == stored:
        return
    if request.resource == JOBS:
        yield from validate.written_job_warnings(spec, "spec", stored=stored is not None)
    elif request.resource == QUEUES and stored is None:
        yield from validate.written_queue_warnings(spec)


def review(request: Request, lookup: Lookup, settings: Settings = DEFAULT_SETTINGS) -> Verdict:
    """Whether the write is allowed. Writes of `status` aren't validated and must not be passed to this function."""
    parsed = _Parsed(request)
    try:
        errors = _errors(request, lookup, settings, parsed)
        warnings = () if errors else tuple(_warnings(request, lookup, settings, parsed))
    except MalformedObject as error:
        return Verdict(errors=[ValidationError("", str(error))])
    return Verdict(errors=errors, warnings=warnings)


class _Parsed:
    """The objects of a request, parsed once."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @cached_property
    def job(self) -> Job:
        return Job.parse(self._request.object or {})

    @cached_property
    def old_job(self) -> Job | None:
        old = self._request.old
        return Job.parse(old) if old is not None else None


def resizes(request: Request) -> bool:
    """Whether the write is a resize of a pod."""
    return request.resource == PODS and request.subresource == RESIZE


def group_of(request: Request) -> str:
    """The name of the pod's PodGroup; empty where it has none."""
    return str(part(part(request.object or {}, "metadata"), "annotations").get(names.GROUP_NAME) or "")


def queues_of_pod(request: Request, lookup: Lookup) -> list[str]:
    """The queue of the pod's PodGroup and its ancestors, nearest first; empty without a PodGroup."""
    group = lookup.pod_group(request.namespace, group_of(request))
    if group is None:
        return []
    found: list[str] = []
    name = str(part(group, "spec").get("queue") or DEFAULT)
    while name and name != ROOT and name not in found:
        found.append(name)
        queue = lookup.queue(name)
        name = queue.spec.parent if queue is not None else ""
    return found


def commanded(request: Request) -> tuple[str, ...]:
    """The queues that the write requests to open or close, for the check that the user may update them."""
    given, old = request.object, request.old
    if request.resource != COMMANDS or given is None or request.operation is Operation.DELETE:
        return ()
    queue = validate.commanded_queue(given)
    same = old is not None and all(given.get(field) == old.get(field) for field in ("action", "target"))
    return (queue,) if queue and not same else ()


def submissions(
    request: Request, settings: Settings = DEFAULT_SETTINGS, lookup: Lookup | None = None
) -> tuple[str, ...]:
    """The queues to which the write newly submits, for the check of the user's permission. A job's own queue can't be
    changed. With `lookup`, submissions to the default queue count for that of the namespace."""
    if request.operation is Operation.DELETE or (request.resource == JOBS and request.old is not None):
        return ()
    return tuple(sorted(_new_submissions(request, settings, lookup)))


def _new_submissions(request: Request, settings: Settings, lookup: Lookup | None) -> dict[str, str]:
    """Queues that no field named before, with the first field that names each."""
    before = {queue for _, queue in submitted(request.resource, request.old, settings.schedulers)}
    annotations = lookup.namespace_annotations(request.namespace) if lookup is not None else {}
    default = annotations.get(names.SCHEDULING_QUEUE_NAME) or DEFAULT
    now: dict[str, str] = {}
    for place, queue in submitted(request.resource, request.object, settings.schedulers):
        if queue not in before:
            now.setdefault(default if queue == DEFAULT else queue, place)
    return now


def _warnings(request: Request, lookup: Lookup, settings: Settings, parsed: _Parsed) -> Iterator[str]:
    resource, given, old = request.resource, request.object, request.old
    if given is None or request.operation is Operation.DELETE:
        return
    if request.operation is Operation.CREATE and resource.kind in settings.unsupported.kinds:
        yield f"{resource.kind} {request.name} is stored, but this version of vcbatch doesn't act on it"
    if old is not None and part(given, "spec") == part(old, "spec"):
        return
    if resource == JOBS:
        job = parsed.job
        name = job.name or validate.generated_name(job.metadata.generate_name)
        yield from validate.job_warnings(job.spec, name, lookup, settings.schedulers)
        if why := left_out(job.spec, job.name):
            yield f"spec.plugins[{Plugin.SVC}]: {why}"
        if parsed.old_job is not None:
            yield from validate.finished_job_warnings(job, parsed.old_job)
    elif resource == CRONJOBS:
        yield from validate.cronjob_warnings(CronJob.parse(given), lookup, settings.schedulers)
    elif resource == JOBFLOWS:
        yield from validate.jobflow_warnings(JobFlow.parse(given))
    elif resource == JOBTEMPLATES:
        yield from validate.jobtemplate_warnings(JobTemplate.parse(given))
    elif resource == HYPERNODES:
        yield from validate.hypernode_warnings(HyperNode.parse(given))
    elif resource == QUEUES:
        yield from validate.queue_warnings(Queue.parse(given))


def _errors(request: Request, lookup: Lookup, settings: Settings, parsed: _Parsed) -> list[ValidationError]:
    resource, given, old = request.resource, request.object, request.old
    if request.operation is Operation.DELETE:
        if resource == QUEUES:
            return validate.queue_deletion_errors(request.name, lookup, rules=settings.queues)
        return []
    if given is None:
        return [ValidationError("", f"{request.operation} of {resource.kind} {request.name} carries no object")]
    if resizes(request):
        return _resize_errors(request, lookup, settings)
    misfits = validate.type_errors(resource, given)
    if misfits and (old is None or json_patch(_desired(old), _desired(given))):
        return misfits  # the other rules need values of the right types
    if resource == JOBS:
        return _job_errors(parsed, lookup)
    if resource == QUEUES:
        before = Queue.parse(old) if old is not None else None
        return validate.queue_errors(Queue.parse(given), lookup, old=before, rules=settings.queues)
    if resource == PODS:
        return _pod_errors(given, old, settings)
    if resource == COMMANDS:
        return list(validate.command_errors(given)) if commanded(request) else []
    if resource == JOBFLOWS:
        errors = validate.jobflow_errors(JobFlow.parse(given), old=JobFlow.parse(old) if old is not None else None)
        return [*errors, *_of_jobs_to_come(request, lookup, settings)]
    if resource == PODGROUPS and _attempt(given) not in (None, _attempt(old)):
        errors = validate.attempt_errors(PodGroup.parse(given), lookup)
        if errors:
            return errors
    if old is not None and part(given, "spec") == part(old, "spec"):
        return []  # labels, owners and finalizers stay editable, even under rules that are newer than the object
    if resource == PODGROUPS:
        before = PodGroup.parse(old) if old is not None else None
        return validate.podgroup_errors(PodGroup.parse(given), lookup, old=before)
    if resource == CRONJOBS:
        cron_job = CronJob.parse(given)
        errors = validate.cronjob_errors(cron_job, lookup)
        return [*errors, *_of_jobs_to_come(request, lookup, settings)]
    if resource == JOBTEMPLATES:
        # No further rule applies: the patch of a flow may add what the template lacks.
        return _of_jobs_to_come(request, lookup, settings)
    if resource == HYPERNODES:
        return validate.hypernode_errors(HyperNode.parse(given))
    return []


def _attempt(group: Json | None) -> Any:
    return part(part(group or {}, "metadata"), "annotations").get(names.ATTEMPT)


def _desired(obj: Json) -> Json:
    """The object without its metadata and its status."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def _of_jobs_to_come(request: Request, lookup: Lookup, settings: Settings) -> list[ValidationError]:
    """Errors for queues that would reject the created objects only later. A queue that doesn't exist yet is no
    error."""
    queues = _new_submissions(request, settings, lookup)
    if len(queues) > MOST_QUEUES:
        text = f"spec.flows: jobs for {len(queues)} queues, want at most {MOST_QUEUES} new ones at a time"
        return [ValidationError("spec.flows", text, validate.Cause.TOO_MANY)]
    return [
        error
        for queue, place in queues.items()
        for error in validate.namespace_errors(queue, request.namespace, lookup, place)
    ]


def _job_errors(parsed: _Parsed, lookup: Lookup) -> list[ValidationError]:
    if parsed.old_job is not None:
        return validate.job_update_errors(parsed.job, parsed.old_job)
    return validate.job_errors(parsed.job, lookup)


def _resize_errors(request: Request, lookup: Lookup, settings: Settings) -> list[ValidationError]:
    """Errors of a resize of a pod that our scheduler counts. The API server has validated the resize itself."""
    if request.old is None or part(request.object or {}, "spec").get("schedulerName") not in settings.schedulers:
        return []
    try:
        pod, old = (msgspec.convert(each, Pod) for each in (request.object, request.old))
    except msgspec.ValidationError as error:
        return [ValidationError("", str(error))]
    queues = [queue for name in queues_of_pod(request, lookup) if (queue := lookup.queue(name)) is not None]
    return validate.resize_errors(pod, old, queues)


def _pod_errors(pod: Json, old: Json | None, settings: Settings) -> list[ValidationError]:
    if part(pod, "spec").get("schedulerName") not in settings.schedulers:
        return []
    annotations = part(part(pod, "metadata"), "annotations")
    if old is not None:
        return validate.pod_update_errors(annotations, part(part(old, "metadata"), "annotations"))
    return validate.pod_errors(annotations)
