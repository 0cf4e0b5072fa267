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
    for nth, request in enumerate(requests):
        request = {"name": "r", "exactly": request} if "firstAvailable" not in request else {"name": "r", **request}
        make(plane, RESOURCECLAIMS, f"{name}-{nth}", spec={"devices": {"requests": [request], **devices}})
    members(plane, name, *({"resourceClaimName": f"{name}-{nth}"} for nth in range(len(requests))))


def members(plane: ControlPlane, name: str, *claims: Json) -> None:
    """A gang with one pod for each of these entries of `resourceClaims`."""
    make(plane, PODGROUPS, name, spec={"minMember": len(claims), "queue": "default"})
    for nth, claim in enumerate(claims):
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        claimed = [{"name": "device", **claim}]
        spec = {"schedulerName": "volcano", "containers": [container], "resourceClaims": claimed}
        annotations = {"scheduling.k8s.io/group-name": name}
        make(plane, PODS, f"{name}-{nth}", metadata={"annotations": annotations}, spec=spec)


def get(plane: ControlPlane, resource: Resource, name: str) -> Json:
    return plane.call("GET", resource.path(namespace=NAMESPACE, name=name))


def nodes(plane: ControlPlane, gang: str, pods: int) -> list[str]:
    return [get(plane, PODS, f"{gang}-{nth}")["spec"].get("nodeName", "") for nth in range(pods)]


def results(plane: ControlPlane, claim: str) -> list[Json]:
    return (status(plane, claim).get("allocation") or {"devices": {"results": []}})["devices"]["results"]


def status(plane: ControlPlane, claim: str) -> Json:
    return get(plane, RESOURCECLAIMS, claim).get("status") or {}
