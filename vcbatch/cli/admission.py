"""Admission inside the local server: the rules of `vcbatch.api.admission`, asked without a webhook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request, Settings
from vcbatch.api.model import MalformedObject
from vcbatch.api.names import DEFAULT_SCHEDULER, KUBE_SCHEDULER, SYSTEM_PRIORITY_CLASSES, webhook_name
from vcbatch.api.queue import Queue
from vcbatch.api.resources import JOBS, NAMESPACES, PODS, PRIORITYCLASSES, QUEUES
from vcbatch.local.apiserver.admission import AdmissionRequest, Denied
from vcbatch.local.apiserver.registry import RequestContext
from vcbatch.runtime.time_zones import time_zones

Json = dict[str, Any]

# Kinds that are stored for tools which expect them, while no controller acts on them.
_WITHOUT_CONTROLLER = frozenset(
    {
        ("", "replicationcontrollers"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("batch", "jobs"),
        ("batch", "cronjobs"),
    }
)

_DENIED = 400
"""What an API server answers where a webhook refuses and names no code, as Volcano's don't."""


class LocalAdmission:
    """The local server's `Admission`."""

    def __init__(
        self,
        settings: Settings = admission.DEFAULT_SETTINGS,
        *,
        scheduler_names: Sequence[str] = (DEFAULT_SCHEDULER, KUBE_SCHEDULER),
    ) -> None:
        self._settings = settings
        self._scheduler_names = scheduler_names

    def mutate(self, request: AdmissionRequest) -> None:
        if request.subresource or request.resource not in admission.MUTATED or request.object is None:
            return
        before = request.object
        try:
            after = admission.mutate(_request(request), _World(request.ctx), self._settings)
        except MalformedObject as error:
            raise Denied(webhook_name(request.resource.plural, "mutate"), str(error), code=_DENIED) from error
        if after is not None and after is not before:
            before.clear()
            before.update(after)

    def validate(self, request: AdmissionRequest) -> None:
        if request.subresource:
            return
        if request.operation == Operation.CREATE:
            request.ctx.warnings.extend(self._what_nothing_will_act_on(request))
        if request.resource not in admission.REVIEWED:
            return
        verdict = admission.review(_request(request), _World(request.ctx), self._settings)
        request.ctx.warnings.extend(verdict.warnings)
        if not verdict.allowed:
            raise Denied(webhook_name(request.resource.plural, "validate"), verdict.message, code=_DENIED)

    def _what_nothing_will_act_on(self, request: AdmissionRequest) -> Sequence[str]:
        """Warnings for what is stored and would then wait for ever without a word."""
        resource, spec = request.resource, (request.object or {}).get("spec")
        if (resource.group, resource.plural) in _WITHOUT_CONTROLLER:
            return [f"nothing acts on a {resource.kind} here: it is stored, and no pods are made; submit a vcjob"]
        if resource not in (PODS, JOBS) or not isinstance(spec, dict):
            return []
        known = " or ".join(self._scheduler_names)
        return [
            f"{path}: no scheduler {name!r} runs here, so that its pods will wait; use {known}"
            for path, name in _schedulers(spec)
            if name not in self._scheduler_names
        ]


def _schedulers(spec: Json) -> Iterator[tuple[str, str]]:
    """The schedulers that a pod or a job names, with the fields that do."""
    if name := spec.get("schedulerName"):
        yield "spec.schedulerName", str(name)
    for index, task in enumerate(spec.get("tasks") or ()):
        if name := ((task.get("template") or {}).get("spec") or {}).get("schedulerName"):
            yield f"spec.tasks[{index}].template.spec.schedulerName", str(name)


def _request(request: AdmissionRequest) -> Request:
    return Request(
        resource=request.resource,
        operation=Operation(request.operation),
        name=request.name,
        namespace=request.namespace,
        object=request.object,
        old=request.old,
    )


class _World:
    """The rules' `Lookup`, on what the server has stored at this moment."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx

    def queue(self, name: str) -> Queue | None:
        stored = self._ctx.lookup(QUEUES, None, name)
        return Queue.parse(stored) if stored is not None else None

    def queues(self) -> Sequence[Queue]:
        return [Queue.parse(stored) for stored in self._ctx.listed(QUEUES, None)]

    def has_priority_class(self, name: str) -> bool:
        return name in SYSTEM_PRIORITY_CLASSES or self._ctx.lookup(PRIORITYCLASSES, None, name) is not None

    def has_time_zone(self, name: str) -> bool:
        return name in time_zones()

    def namespace_annotations(self, name: str) -> dict[str, str]:
        stored = self._ctx.lookup(NAMESPACES, None, name) or {}
        return stored.get("metadata", {}).get("annotations") or {}
