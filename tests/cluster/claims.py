"""Devices, gangs that claim them, and what they got, on a control plane."""

from __future__ import annotations

from typing import Any

from tests.cluster.controlplane import ControlPlane, Json
from vcbatch.api.resources import PODGROUPS, PODS, RESOURCECLAIMS, RESOURCESLICES, Resource

NAMESPACE = "default"


def make(plane: ControlPlane, resource: Resource, name: str, **body: Any) -> Json:
    namespace = NAMESPACE if resource.namespaced else None
    meta = {"name": name, **body.pop("metadata", {})}
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}
    return plane.call("POST", resource.path(namespace=namespace), whole)


def counters(**given: str) -> Json:
    """A set of counters, or what is taken of one."""
    slices = given.pop("slices")
    return {**given, "counters": {"slices": {"value": slices}}}


def publish(plane: ControlPlane, name: str, driver: str, node: str, count: int, **spec: Any) -> None:
    pool = {"name": node or "fabric", "generation": 1, "resourceSliceCount": count}
    where: Json = {"nodeName": node} if node else {"allNodes": True}
    make(plane, RESOURCESLICES, name, spec={"driver": driver, "pool": pool, **where, **spec})


def gang(plane: ControlPlane, name: str, *requests: Json, **devices: Any) -> None:
    """A gang with one pod for each request, which has a claim for it, with this besides."""
    make(plane, PODGROUPS, name, spec={"minMember": len(requests), "queue": "default"})
    for nth, request in enumerate(requests):
        member = f"{name}-{nth}"
        request = {"name": "r", "exactly": request} if "firstAvailable" not in request else {"name": "r", **request}
        make(plane, RESOURCECLAIMS, member, spec={"devices": {"requests": [request], **devices}})
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        claims = [{"name": "device", "resourceClaimName": member}]
        spec = {"schedulerName": "volcano", "containers": [container], "resourceClaims": claims}
        make(plane, PODS, member, metadata={"annotations": {"scheduling.k8s.io/group-name": name}}, spec=spec)


def get(plane: ControlPlane, resource: Resource, name: str) -> Json:
    return plane.call("GET", resource.path(namespace=NAMESPACE, name=name))


def nodes(plane: ControlPlane, gang: str, pods: int) -> list[str]:
    return [get(plane, PODS, f"{gang}-{nth}")["spec"].get("nodeName", "") for nth in range(pods)]


def results(plane: ControlPlane, claim: str) -> list[Json]:
    return (status(plane, claim).get("allocation") or {"devices": {"results": []}})["devices"]["results"]


def status(plane: ControlPlane, claim: str) -> Json:
    return get(plane, RESOURCECLAIMS, claim).get("status") or {}
