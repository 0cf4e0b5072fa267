"""Devices by claim on a real API server: partitions, shares, and devices that have to be made ready."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.cluster.claims import NAMESPACE, counters, gang, get, make, nodes, publish, results, status
from tests.cluster.components import SCHEDULER, Components
from tests.cluster.controlplane import ControlPlane, Json
from tests.cluster.processes import wait_until
from vcbatch.api.resources import DEVICECLASSES, PODGROUPS, RESOURCECLAIMS

GPU, NIC, FABRIC = "gpu.example.com", "nic.example.com", "fabric.example.com"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Two nodes: a GPU in parts on the first, a network card to share on the second, and an accelerator that either
    can be given."""
    pytest.importorskip("cel")
    control_plane.add_nodes(2)
    for driver in (GPU, NIC, FABRIC):
        selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
        make(control_plane, DEVICECLASSES, driver, spec={"selectors": [selector]})
    publish(control_plane, "gpu-counters", GPU, "node-0", 2, sharedCounters=[counters(name="gpu-0", slices="8")])
    parts = {"half-0": "4", "half-1": "4", "whole": "8"}
    devices: list[Json] = [
        {"name": name, "consumesCounters": [counters(counterSet="gpu-0", slices=amount)]}
        for name, amount in parts.items()
    ]
    publish(control_plane, "gpu-devices", GPU, "node-0", 2, devices=devices)
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {"bandwidth": {"value": "10Gi", "requestPolicy": policy}}
    shared = {"name": "nic-0", "allowMultipleAllocations": True, "capacity": capacity}
    publish(control_plane, "nic", NIC, "node-1", 1, devices=[shared])
    waits = {"bindsToNode": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    publish(control_plane, "fabric", FABRIC, "", 1, devices=[{"name": "fpga-0", **waits}])
    with Components(control_plane) as components:
        components.start(SCHEDULER).wait_ready()
        yield control_plane


def test_a_gang_gets_parts_of_a_gpu_and_the_next_one_waits(plane: ControlPlane) -> None:
    want = {"deviceClassName": GPU, "count": 1}
    gang(plane, "parts", want, want)
    wait_until("the gang is bound", lambda: nodes(plane, "parts", 2) == ["node-0"] * 2)
    assert sorted(result["device"] for nth in (0, 1) for result in results(plane, f"parts-{nth}")) == [
        "half-0",
        "half-1",
    ]
    (user,) = status(plane, "parts-0")["reservedFor"]
    assert (user["resource"], user["name"]) == ("pods", "parts-0")
    gang(plane, "late", want)
    wait_until("why it waits is told", lambda: "resourceclaims" in str(get(plane, PODGROUPS, "late").get("status")))
    assert results(plane, "late-0") == []


def test_claims_share_a_device_by_its_capacity(plane: ControlPlane) -> None:
    def want(**amounts: str) -> Json:
        return {"deviceClassName": NIC, **({"capacity": {"requests": amounts}} if amounts else {})}

    gang(plane, "net", want(bandwidth="4Gi"), want(bandwidth="1500Mi"), want())
    wait_until("the gang is bound", lambda: nodes(plane, "net", 3) == ["node-1"] * 3)
    given = [result for nth in range(3) for result in results(plane, f"net-{nth}")]
    assert [result["device"] for result in given] == ["nic-0"] * 3
    assert [result["consumedCapacity"] for result in given] == [{"bandwidth": f"{n}Gi"} for n in (4, 2, 1)]
    shares = [result["shareID"] for result in given]
    assert len(set(shares)) == 3
    assert [str(uuid.UUID(share)) for share in shares] == shares
    gang(plane, "more", want(bandwidth="4Gi"))
    wait_until("why it waits is told", lambda: "resourceclaims" in str(get(plane, PODGROUPS, "more").get("status")))
    gang(plane, "fits", want(bandwidth="3Gi"))
    wait_until("what is left is given away", lambda: nodes(plane, "fits", 1) == ["node-1"])


def test_a_pod_is_bound_when_its_device_is_ready_and_a_device_that_fails_is_given_back(plane: ControlPlane) -> None:
    gang(plane, "fast", {"deviceClassName": FABRIC})
    wait_until("the device is given", lambda: bool(results(plane, "fast-0")))
    reported = status(plane, "fast-0")
    (result,) = reported["allocation"]["devices"]["results"]
    assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["Attached"], ["Broken"])
    assert "allocationTimestamp" in reported["allocation"]
    (term,) = reported["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["key"] == "metadata.name"
    assert nodes(plane, "fast", 1) == [""]
    _report(plane, "fast-0", "Broken")
    wait_until("the device is given back", lambda: not status(plane, "fast-0").get("devices"))
    wait_until("it is given again", lambda: bool(results(plane, "fast-0")))
    assert nodes(plane, "fast", 1) == [""]
    _report(plane, "fast-0", "Attached")
    (node,) = status(plane, "fast-0")["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"]
    wait_until("the pod is bound", lambda: nodes(plane, "fast", 1) == [node])


def _report(plane: ControlPlane, claim: str, condition: str) -> None:
    """The driver says that this is true of the claim's device."""
    (result,) = results(plane, claim)
    device = {key: result[key] for key in ("driver", "pool", "device")}
    true = {"type": condition, "status": "True", "reason": "Told", "message": "", "observedGeneration": 1}
    stamp = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    body = {"status": {"devices": [{**device, "conditions": [{**true, **stamp}]}]}}
    path = RESOURCECLAIMS.path(namespace=NAMESPACE, name=claim, subresource="status")
    plane.call("PATCH", path, body, content_type="application/merge-patch+json")
