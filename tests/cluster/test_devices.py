"""Devices by claim on a real API server: partitions, shares, and devices that have to be made ready."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.components import SCHEDULER, Components
from tests.cluster.controlplane import ControlPlane, Json
from tests.cluster.processes import wait_until
from vcbatch.api.resources import DEVICECLASSES, PODGROUPS, PODS, RESOURCECLAIMS, RESOURCESLICES, Resource

NAMESPACE = "default"
GPU, NIC, FABRIC = "gpu.example.com", "nic.example.com", "fabric.example.com"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Two nodes: a GPU in parts on the first, a network card to share on the second, and an accelerator that either
    can be given."""
    pytest.importorskip("cel")
    control_plane.add_nodes(2)
    for driver in (GPU, NIC, FABRIC):
        selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
        _make(control_plane, DEVICECLASSES, driver, spec={"selectors": [selector]})
    _slice(control_plane, "gpu-counters", GPU, "node-0", 2, sharedCounters=[_counters(name="gpu-0", slices="8")])
    parts = {"half-0": "4", "half-1": "4", "whole": "8"}
    devices: list[Json] = [
        {"name": name, "consumesCounters": [_counters(counterSet="gpu-0", slices=amount)]}
        for name, amount in parts.items()
    ]
    _slice(control_plane, "gpu-devices", GPU, "node-0", 2, devices=devices)
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {"bandwidth": {"value": "10Gi", "requestPolicy": policy}}
    shared = {"name": "nic-0", "allowMultipleAllocations": True, "capacity": capacity}
    _slice(control_plane, "nic", NIC, "node-1", 1, devices=[shared])
    waits = {"bindsToNode": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    _slice(control_plane, "fabric", FABRIC, "", 1, devices=[{"name": "fpga-0", **waits}])
    with Components(control_plane) as components:
        components.start(SCHEDULER).wait_ready()
        yield control_plane


def _make(plane: ControlPlane, resource: Resource, name: str, **body: Any) -> Json:
    namespace = NAMESPACE if resource.namespaced else None
    meta = {"name": name, **body.pop("metadata", {})}
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}
    return plane.call("POST", resource.path(namespace=namespace), whole)


def _counters(**given: str) -> Json:
    """A set of counters, or what is taken of one."""
    slices = given.pop("slices")
    return {**given, "counters": {"slices": {"value": slices}}}


def _slice(plane: ControlPlane, name: str, driver: str, node: str, count: int, **spec: Any) -> None:
    pool = {"name": node or "fabric", "generation": 1, "resourceSliceCount": count}
    where: Json = {"nodeName": node} if node else {"allNodes": True}
    _make(plane, RESOURCESLICES, name, spec={"driver": driver, "pool": pool, **where, **spec})


def _gang(plane: ControlPlane, name: str, *requests: Json) -> None:
    """A gang with one pod for each request, which has a claim for it."""
    _make(plane, PODGROUPS, name, spec={"minMember": len(requests), "queue": "default"})
    for nth, request in enumerate(requests):
        member = f"{name}-{nth}"
        _make(plane, RESOURCECLAIMS, member, spec={"devices": {"requests": [{"name": "r", "exactly": request}]}})
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        claims = [{"name": "device", "resourceClaimName": member}]
        spec = {"schedulerName": "volcano", "containers": [container], "resourceClaims": claims}
        _make(plane, PODS, member, metadata={"annotations": {"scheduling.k8s.io/group-name": name}}, spec=spec)


def _get(plane: ControlPlane, resource: Resource, name: str) -> Json:
    return plane.call("GET", resource.path(namespace=NAMESPACE, name=name))


def _nodes(plane: ControlPlane, gang: str, pods: int) -> list[str]:
    return [_get(plane, PODS, f"{gang}-{nth}")["spec"].get("nodeName", "") for nth in range(pods)]


def _results(plane: ControlPlane, claim: str) -> list[Json]:
    return (_status(plane, claim).get("allocation") or {"devices": {"results": []}})["devices"]["results"]


def _status(plane: ControlPlane, claim: str) -> Json:
    return _get(plane, RESOURCECLAIMS, claim).get("status") or {}


def test_a_gang_gets_parts_of_a_gpu_and_the_next_one_waits(plane: ControlPlane) -> None:
    want = {"deviceClassName": GPU, "count": 1}
    _gang(plane, "parts", want, want)
    wait_until("the gang is bound", lambda: _nodes(plane, "parts", 2) == ["node-0"] * 2)
    assert sorted(result["device"] for nth in (0, 1) for result in _results(plane, f"parts-{nth}")) == [
        "half-0",
        "half-1",
    ]
    (user,) = _status(plane, "parts-0")["reservedFor"]
    assert (user["resource"], user["name"]) == ("pods", "parts-0")
    _gang(plane, "late", want)
    wait_until("why it waits is told", lambda: "resourceclaims" in str(_get(plane, PODGROUPS, "late").get("status")))
    assert _results(plane, "late-0") == []


def test_claims_share_a_device_by_its_capacity(plane: ControlPlane) -> None:
    def want(**amounts: str) -> Json:
        return {"deviceClassName": NIC, **({"capacity": {"requests": amounts}} if amounts else {})}

    _gang(plane, "net", want(bandwidth="4Gi"), want(bandwidth="1500Mi"), want())
    wait_until("the gang is bound", lambda: _nodes(plane, "net", 3) == ["node-1"] * 3)
    results = [result for nth in range(3) for result in _results(plane, f"net-{nth}")]
    assert [result["device"] for result in results] == ["nic-0"] * 3
    assert [result["consumedCapacity"] for result in results] == [{"bandwidth": f"{n}Gi"} for n in (4, 2, 1)]
    shares = [result["shareID"] for result in results]
    assert len(set(shares)) == 3
    assert [str(uuid.UUID(share)) for share in shares] == shares
    _gang(plane, "more", want(bandwidth="4Gi"))
    wait_until("why it waits is told", lambda: "resourceclaims" in str(_get(plane, PODGROUPS, "more").get("status")))
    _gang(plane, "fits", want(bandwidth="3Gi"))
    wait_until("what is left is given away", lambda: _nodes(plane, "fits", 1) == ["node-1"])


def test_a_pod_is_bound_when_its_device_is_ready_and_a_device_that_fails_is_given_back(plane: ControlPlane) -> None:
    _gang(plane, "fast", {"deviceClassName": FABRIC})
    wait_until("the device is given", lambda: bool(_results(plane, "fast-0")))
    status = _status(plane, "fast-0")
    (result,) = status["allocation"]["devices"]["results"]
    assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["Attached"], ["Broken"])
    assert "allocationTimestamp" in status["allocation"]
    (term,) = status["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["key"] == "metadata.name"
    assert _nodes(plane, "fast", 1) == [""]
    _tell(plane, "fast-0", "Broken")
    wait_until("the device is given back", lambda: not _status(plane, "fast-0").get("devices"))
    wait_until("it is given again", lambda: bool(_results(plane, "fast-0")))
    assert _nodes(plane, "fast", 1) == [""]
    _tell(plane, "fast-0", "Attached")
    (node,) = _status(plane, "fast-0")["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"]
    wait_until("the pod is bound", lambda: _nodes(plane, "fast", 1) == [node])


def _tell(plane: ControlPlane, claim: str, condition: str) -> None:
    """The driver says that this is true of the claim's device."""
    (result,) = _results(plane, claim)
    device = {key: result[key] for key in ("driver", "pool", "device")}
    true = {"type": condition, "status": "True", "reason": "Told", "message": "", "observedGeneration": 1}
    stamp = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    body = {"status": {"devices": [{**device, "conditions": [{**true, **stamp}]}]}}
    path = RESOURCECLAIMS.path(namespace=NAMESPACE, name=claim, subresource="status")
    plane.call("PATCH", path, body, content_type="application/merge-patch+json")
