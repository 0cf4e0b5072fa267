"""Admission in local mode: the admission service in this process, at the address in the shipped configurations."""

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from vcbatch.api import admission
from vcbatch.api.admission import Lookup, Settings
from vcbatch.api.apps import PodManagement
from vcbatch.api.loose import listed, part
from vcbatch.api.model import MalformedObject
from vcbatch.api.names import DEFAULT_SCHEDULER, GROUP_MIN_MEMBER, KUBE_SCHEDULER, SYSTEM_PRIORITY_CLASSES
from vcbatch.api.queue import Queue
from vcbatch.api.resources import (
    BATCH_CRONJOBS,
    BATCH_JOBS,
    CRONJOBS,
    DEPLOYMENTS,
    JOBS,
    JOBTEMPLATES,
    NAMESPACES,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from vcbatch.api.unfinished import QueueWork, being_deleted, work_in
from vcbatch.api.workload import Workload
from vcbatch.core.podgroup.wanted import min_member
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.local.apiserver.access import ADMINISTRATORS
from vcbatch.local.apiserver.admission import AdmissionRequest, Answer, Asked, Service
from vcbatch.local.apiserver.authn import ADMINISTRATOR
from vcbatch.local.apiserver.kinds.admission import MUTATING, VALIDATING
from vcbatch.local.apiserver.registry import RequestContext
from vcbatch.runtime.metrics.meter import NoMeter
from vcbatch.runtime.time_zones import time_zones
from webhooks import review
from webhooks.access import not_updating
from webhooks.configurations import Target, covers, pointed, shipped
from webhooks.paths import PATHS
from webhooks.service import AdmissionService

Json = dict[str, Any]

_WITHOUT_CONTROLLER: Final = frozenset({("", "replicationcontrollers"), ("apps", "daemonsets")})
"""Kinds that are stored for tools which expect them, although no controller reconciles them."""
_POD_SPECS: Final[Mapping[Resource, str]] = {
    PODS: "spec",
    DEPLOYMENTS: "spec.template.spec",
    REPLICASETS: "spec.template.spec",
    STATEFULSETS: "spec.template.spec",
    BATCH_JOBS: "spec.template.spec",
    BATCH_CRONJOBS: "spec.jobTemplate.spec.template.spec",
}
_WORKLOADS: Final = (DEPLOYMENTS, REPLICASETS, STATEFULSETS, BATCH_JOBS)
_JOB_SPECS: Final[Mapping[Resource, str]] = {JOBS: "spec", CRONJOBS: "spec.jobTemplate.spec", JOBTEMPLATES: "spec"}

_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_US: Final = "vcbatch-up"


# -- the service ----------------------------------------------------------------------------------------------------


def admission_services(clock: Clock, settings: Settings = admission.DEFAULT_SETTINGS) -> dict[tuple[str, str], Service]:
    """The admission service, by the namespace and name of its Service in the shipped configurations."""
    service = LocalAdmission(clock, settings)
    asked = (webhook["clientConfig"]["service"] for one in _shipped() for webhook in one["webhooks"])
    return {(where["namespace"], where["name"]): service for where in asked}


class LocalAdmission:
    """The service for the local server's webhooks. It is that of a cluster, but reads the server's current objects
    instead of caches."""

    def __init__(self, clock: Clock, settings: Settings = admission.DEFAULT_SETTINGS) -> None:
        self._clock = clock
        self._settings = settings

    async def __call__(self, asked: Asked) -> Answer:
        path = PATHS.get(asked.path)
        if path is None:
            raise LookupError(f"no webhook at {asked.path}")
        service = AdmissionService(
            world=_World(asked.ctx),
            clock=self._clock,
            meter=NoMeter(),
            settings=lambda: self._settings,
            rights=_Administrators(),
        )
        # Validation on this thread sees one state of the store, for objects of any size.
        said = await service.answer(path, _asked(asked.request), size=0)
        details = review.details_of(said.errors) if said.errors else None
        status = {"message": said.message, "code": said.code, "reason": said.reason, "details": details}
        return Answer(
            allowed=said.allowed,
            status={key: value for key, value in status.items() if value},
            patch=said.patch,
            warnings=review.clipped(said.warnings),
        )


class _Administrators:
    """The permissions of local mode: administrators have all, other users none."""

    async def update_refusal(self, request: admission.Request, queue: str) -> str:
        return "" if ADMINISTRATORS in request.user.groups else not_updating(request.user, queue)


def _asked(request: Json) -> review.Asked:
    resource = request["resource"]
    return review.Asked(
        uid=request["uid"],
        resource=review.ResourceName(
            group=resource["group"], version=resource["version"], resource=resource["resource"]
        ),
        operation=request["operation"],
        name=request.get("name", ""),
        namespace=request.get("namespace", ""),
        sub_resource=request.get("subResource", ""),
        user_info=review.UserInfo(
            username=_name_of(request["userInfo"]["username"]), groups=tuple(request["userInfo"]["groups"])
        ),
        object=request["object"],
        old_object=request["oldObject"],
    )


def _name_of(user: str) -> str:
    """The name of a user for admission: for the administrator, whose token only this machine's user can read, the name
    of that user."""
    return os_user() if user == ADMINISTRATOR else user


@functools.cache
def os_user() -> str:
    """The name of the user who runs this process, or the number where the user has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class _World:
    """The service's `ClusterView` on the server's store: complete and always current."""

    complete = True
    version = 0

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx

    def needed(self, resource: Resource) -> bool:
        return False

    def changes_tree(self, request: admission.Request) -> bool:
        return False

    def lacks(self, request: admission.Request) -> bool:
        return False

    async def refresh(self, request: admission.Request) -> Lookup:
        """The view itself, since there is no newer state."""
        return self

    def work(self, queue: str) -> QueueWork:
        listed = self._ctx.listed
        return work_in(
            queue,
            jobs=listed(JOBS, None),
            groups=listed(PODGROUPS, None),
            batch_jobs=listed(BATCH_JOBS, None),
            pods=listed(PODS, None),
            leaving=self._is_leaving,
        )

    def _is_leaving(self, namespace: str) -> bool:
        return being_deleted(self._ctx.lookup(NAMESPACES, None, namespace) or {})

    def job(self, namespace: str, name: str) -> Json | None:
        return self._ctx.lookup(JOBS, namespace, name)

    def pod_group(self, namespace: str, name: str) -> Json | None:
        return self._ctx.lookup(PODGROUPS, namespace, name)

    def queue(self, name: str) -> Queue | None:
        stored = self._ctx.lookup(QUEUES, None, name)
        return _readable(stored) if stored is not None else None

    def queues(self) -> Sequence[Queue]:
        found = (_readable(stored) for stored in self._ctx.listed(QUEUES, None))
        return [queue for queue in found if queue is not None]

    def has_priority_class(self, name: str) -> bool:
        return name in SYSTEM_PRIORITY_CLASSES or self._ctx.lookup(PRIORITYCLASSES, None, name) is not None

    def has_time_zone(self, name: str) -> bool:
        return name in time_zones()

    def namespace_annotations(self, name: str) -> dict[str, str]:
        stored = self._ctx.lookup(NAMESPACES, None, name) or {}
        return stored.get("metadata", {}).get("annotations") or {}


def _readable(stored: Json) -> Queue | None:
    try:
        return Queue.parse(stored)
    except MalformedObject:
        return None


# -- the configurations ---------------------------------------------------------------------------------------------


@functools.cache
def _shipped() -> Sequence[Json]:
    return shipped()


async def ensure_webhooks(api: Api, *, job_pods: bool = False) -> None:
    """Create the webhook configurations of a cluster, or update them. `job_pods`: they include pods of Jobs."""
    wanted = pointed(_shipped(), target=Target(job_pods=job_pods))
    for resource in (MUTATING, VALIDATING):
        stored = {item["metadata"]["name"]: item for item in (await api.list(resource)).items}
        for configuration in wanted:
            if configuration["kind"] == resource.kind:
                await _ensure(api, resource, configuration, stored.get(configuration["metadata"]["name"]))


async def _ensure(api: Api, resource: Resource, configuration: Json, stored: Json | None) -> None:
    metadata = configuration["metadata"]
    marked = {**metadata, "labels": {**(metadata.get("labels") or {}), _MANAGED_BY: _US}}
    wanted = {**configuration, "metadata": marked}
    if stored is None:
        await api.create(resource, wanted)
    elif not covers(stored.get("webhooks"), wanted.get("webhooks")):
        await api.replace(resource, {**stored, "webhooks": wanted["webhooks"]})


async def remove_webhooks(api: Api) -> None:
    """Delete the configurations that `ensure_webhooks` created, but none of the user's."""
    for resource in (MUTATING, VALIDATING):
        for item in (await api.list(resource, label_selector=f"{_MANAGED_BY}={_US}")).items:
            try:
                await api.delete(resource, item["metadata"]["name"])
            except ApiError as error:
                if not error.not_found:
                    raise


# -- notices --------------------------------------------------------------------------------------------------------


def idle_notices(
    scheduler_names: Sequence[str] = (DEFAULT_SCHEDULER, KUBE_SCHEDULER),
) -> Callable[[AdmissionRequest], Sequence[str]]:
    """Warnings for objects that are stored and would stay pending without any message."""

    def notices(request: AdmissionRequest) -> Sequence[str]:
        resource, body = request.resource, request.object or {}
        if (resource.group, resource.plural) in _WITHOUT_CONTROLLER:
            return [f"the local server has no controller for {resource.kind}s: no pods are created; use a Deployment"]
        known = " or ".join(scheduler_names)
        unknown = [
            f"{path}: the local server has no scheduler {name!r}: pods will stay pending; use {known}"
            for path, name in _schedulers(resource, body)
            if name not in scheduler_names
        ]
        return [*unknown, *_gangs_too_large(resource, body)]

    return notices


def _schedulers(resource: Resource, body: Json) -> Iterator[tuple[str, str]]:
    """The schedulers that a pod, a job or a workload names, with the fields."""
    for path in (_POD_SPECS.get(resource), _JOB_SPECS.get(resource)):
        if path is not None and (name := _at(body, path).get("schedulerName")):
            yield f"{path}.schedulerName", str(name)
    if (path := _JOB_SPECS.get(resource)) is None:
        return
    for index, task in enumerate(listed(_at(body, path), "tasks")):
        if name := _at(task, "template.spec").get("schedulerName"):
            yield f"{path}.tasks[{index}].template.spec.schedulerName", str(name)


def _gangs_too_large(resource: Resource, body: Json) -> Iterator[str]:
    """Warnings for workloads that require a gang of more pods than they have at a time."""
    if resource not in _WORKLOADS:
        return
    wanted = min_member(msgspec.convert(body, Workload))
    spec = part(body, "spec")
    most = spec.get("parallelism" if resource == BATCH_JOBS else "replicas", 1)
    if resource == BATCH_JOBS and spec.get("completions") is not None:
        most = min(most, spec["completions"])
    if wanted > most > 0:
        yield (
            f"metadata.annotations[{GROUP_MIN_MEMBER}]: a gang of {wanted} never starts: there are at most "
            f"{most} pods at a time"
        )
    elif resource == STATEFULSETS and wanted > 1 and spec.get("podManagementPolicy") != PodManagement.PARALLEL:
        yield (
            f"spec.podManagementPolicy: a gang of {wanted} never starts: each pod is created when the "
            f"previous one is running; use {PodManagement.PARALLEL}"
        )


def _at(body: Json, path: str) -> Json:
    return functools.reduce(part, path.split("."), body)
