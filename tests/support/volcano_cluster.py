"""A cluster with the objects of Volcano's Helm chart and programs, on an in-memory server."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from tests.fakes.api import FakeApi
from vcbatch.api.crd import render_all
from vcbatch.api.resources import (
    CONFIGMAPS,
    CRDS,
    DEPLOYMENTS,
    QUEUES,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from vcbatch.cli.inventory.model import Inventory
from vcbatch.cli.inventory.read import ENDPOINT_SLICES, MUTATING_WEBHOOKS, Reader
from vcbatch.interfaces.api import ApiError, Listing

Json = dict[str, Any]
T = TypeVar("T")

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
NAMESPACE = "volcano-system"
RELEASE = {"meta.helm.sh/release-name": "volcano", "meta.helm.sh/release-namespace": NAMESPACE}
HELM = {"app.kubernetes.io/managed-by": "Helm"}
POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


class Cluster(FakeApi):
    """Lists have pages of two objects; requests for `forbidden` plurals get 403, for `missing` ones 404."""

    def __init__(self) -> None:
        super().__init__()
        self.forbidden: set[str] = set()
        self.missing: set[str] = set()
        self.release = "v1.36.1"
        self.server_date = "Sun, 01 Nov 2026 12:00:00 GMT"
        self.pages_read = 0

    async def reported(self) -> Json:
        return {"gitVersion": self.release}

    async def list(self, resource: Resource, *, namespace: str | None = None, **options: Any) -> Listing[Any]:
        if resource.plural in self.missing:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if resource.plural in self.forbidden:
            message = (
                f'{resource.plural} is forbidden: User "eve" cannot list resource "{resource.plural}" in API group '
                f'"{resource.group}" at the cluster scope'
            )
            raise ApiError(403, "Forbidden", message)
        label, _, value = options.pop("label_selector", "").partition("=")
        field = options.pop("field_selector", "")
        everything = self.objects
        try:
            self.objects = {
                key: obj
                for key, obj in everything.items()
                if (namespace is None or key[1] == namespace)
                and (not label or obj["metadata"].get("labels", {}).get(label) == value)
                and not (
                    field.startswith("spec.schedulerName!=")
                    and obj.get("spec", {}).get("schedulerName") == field.partition("!=")[2]
                )
            }
            return await super().list(resource, **options)
        finally:
            self.objects = everything

    async def pages(self, resource: Resource, *, model: type[T] = dict, **options: Any) -> AsyncIterator[Sequence[T]]:
        items = (await self.list(resource, model=model, **options)).items
        for at in range(0, max(len(items), 1), 2):
            self.pages_read += 1
            yield items[at : at + 2]

    async def read(self) -> Inventory:
        return await Reader(self, version=self.reported, now=lambda: NOW).read()


def volcano_cluster() -> Cluster:
    """Volcano 1.15 from its chart, with its default values and its default scheduler configuration."""
    api = Cluster()
    for definition in render_all():
        body = copy.deepcopy(definition)
        body["metadata"] |= {"annotations": dict(RELEASE), "labels": dict(HELM)}
        body["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
        api.seed(CRDS, body)
    api.seed(DEPLOYMENTS, workload("volcano-scheduler", "vc-scheduler", "volcano-scheduler", *SCHEDULER))
    api.seed(
        DEPLOYMENTS,
        workload("volcano-controllers", "vc-controller-manager", "volcano-controller", "--leader-elect=false"),
    )
    api.seed(
        DEPLOYMENTS,
        workload("volcano-admission", "vc-webhook-manager", "volcano-admission", "--enabled-admission=/jobs/mutate"),
    )
    data = {"volcano-scheduler.conf": POLICY}
    api.seed(CONFIGMAPS, {"metadata": {"name": "volcano-scheduler-configmap", "namespace": NAMESPACE}, "data": data})
    admission(api)
    for name in ("root", "default"):
        api.seed(QUEUES, queue(name, "Open"))
    return api


SCHEDULER = (
    "--logtostderr",
    "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
    "--leader-elect=false",
    "2>&1",
)


def workload(name: str, image: str, app: str, *args: str, namespace: str = NAMESPACE, replicas: int = 1) -> Json:
    """A Deployment of Volcano's chart."""
    container = {
        "name": name,
        "image": f"docker.io/volcanosh/{image}:v1.15.0",
        "args": list(args),
        "volumeMounts": [{"name": "scheduler-config", "mountPath": "/volcano.scheduler"}],
    }
    volume = {"name": "scheduler-config", "configMap": {"name": f"{name}-configmap"}}
    pod = {"containers": [container], "volumes": [volume]}
    return {
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(RELEASE), "labels": dict(HELM)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": pod},
        },
        "status": {"readyReplicas": replicas},
    }


def ours(name: str, part: str, *args: str, replicas: int = 2, ready: int = 2, namespace: str = NAMESPACE) -> Json:
    """A Deployment of vcbatch."""
    labels = {"app.kubernetes.io/name": "vcbatch", "app.kubernetes.io/component": part}
    container = {"name": part, "image": "registry/vcbatch@sha256:00", "args": [part, *args]}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
        "status": {"readyReplicas": ready},
    }


def admission(api: Cluster, *, ready: bool = True) -> None:
    """Volcano's Service and three of its webhook configurations."""
    api.seed(
        SERVICES,
        {
            "metadata": {"name": "volcano-admission-service", "namespace": NAMESPACE},
            "spec": {"selector": {"app": "volcano-admission"}},
        },
    )
    labels = {"kubernetes.io/service-name": "volcano-admission-service"}
    endpoints = [{"addresses": ["10.0.0.9"], "conditions": {"ready": True}}] if ready else []
    metadata = {"name": "volcano-admission-service-x", "namespace": NAMESPACE, "labels": labels}
    api.seed(ENDPOINT_SLICES, {"metadata": metadata, "endpoints": endpoints})
    for resource, plural, verb, group in (
        (MUTATING_WEBHOOKS, "jobs", "mutate", "batch.volcano.sh"),
        (VALIDATING_WEBHOOKS, "jobs", "validate", "batch.volcano.sh"),
        (MUTATING_WEBHOOKS, "pods", "mutate", ""),
    ):
        service = {"name": "volcano-admission-service", "namespace": NAMESPACE, "path": f"/{plural}/{verb}"}
        webhook = {
            "name": f"{plural[:-1]}{verb}.volcano.sh",
            "failurePolicy": "Fail",
            "clientConfig": {"service": service, "caBundle": "Q0E="},
            "rules": [{"apiGroups": [group], "resources": [plural], "operations": ["CREATE"]}],
        }
        name = f"volcano-admission-service-{plural}-{verb}"
        api.seed(resource, {"metadata": {"name": name, "annotations": dict(RELEASE)}, "webhooks": [webhook]})


def queue(name: str, state: str, *, manager: str = "queue-controller", operation: str = "Apply") -> Json:
    """A queue whose state was written by this field manager."""
    entry = {
        "manager": manager,
        "operation": operation,
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:state": {}}},
    }
    return {"metadata": {"name": name, "managedFields": [entry]}, "spec": {"weight": 1}, "status": {"state": state}}


def job(name: str, phase: str, *, namespace: str = "team", uid: str = "", scheduler: str = "volcano") -> Json:
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": uid or f"uid-of-{name}"},
        "spec": {"schedulerName": scheduler},
        "status": {"state": {"phase": phase}} if phase else {},
    }


def pod_group(of: Json, phase: str, *, name: str = "") -> Json:
    """The PodGroup of a job, by default with the name that Volcano 1.10 and newer use."""
    metadata = of["metadata"]
    owner = {"kind": "Job", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {
        "metadata": {
            "name": name or f"{metadata['name']}-{metadata['uid']}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "status": {"phase": phase},
    }


def lease(name: str, holder: str, renewed: str, *, namespace: str = NAMESPACE) -> Json:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
