"""Extended resources that devices serve, on a real API server: the claims that the scheduler makes for pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.claims import NAMESPACE, get, make, nodes, publish
from tests.cluster.components import SCHEDULER, Components
from tests.cluster.controlplane import ControlPlane, Json, Options
from tests.cluster.processes import wait_until
from vcbatch.api.names import CLAIM_FINALIZER, extended_claim_name
from vcbatch.api.resources import DEVICECLASSES, PODGROUPS, PODS, RESOURCECLAIMS

DRIVER, GPU = "gpu.example.com", "example.com/gpu"
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Two nodes with two GPUs each, which no device plugin offers."""
    pytest.importorskip("cel")
    options = Options(controllers=(*Options().controllers, "resourceclaim-controller"))
    with ControlPlane(tmp_path_factory.mktemp("cluster"), binaries, options) as plane:
        plane.install_crds()
        plane.add_nodes(2)
        selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
        make(plane, DEVICECLASSES, "gpus", spec={"selectors": selectors, "extendedResourceName": GPU})
        for node in ("node-0", "node-1"):
            publish(plane, node, DRIVER, node, 1, devices=[{"name": "gpu-0"}, {"name": "gpu-1"}])
        with Components(plane) as components:
            components.start(SCHEDULER).wait_ready()
            yield plane


@pytest.fixture(autouse=True)
def _free(plane: ControlPlane) -> Iterator[None]:
    """Every test leaves all devices to the next."""
    yield
    for resource in (PODS, PODGROUPS):
        plane.call("DELETE", f"{resource.path(namespace=NAMESPACE)}?gracePeriodSeconds=0")
    wait_until("no claim is left", lambda: not _claims(plane))


def _claims(plane: ControlPlane) -> list[Json]:
    return plane.call("GET", RESOURCECLAIMS.path(namespace=NAMESPACE))["items"]


def _container(name: str, count: int, resource: str = GPU) -> Json:
    amounts = {resource: str(count)}
    return {"name": name, "image": "none", "resources": {"requests": {"cpu": "100m", **amounts}, "limits": amounts}}


def _gang(plane: ControlPlane, name: str, size: int, *containers: Json, **spec: Any) -> None:
    make(plane, PODGROUPS, name, spec={"minMember": size, "queue": "default"})
    for nth in range(size):
        _pod(plane, name, nth, *containers, **spec)


def _pod(plane: ControlPlane, gang: str, nth: int, *containers: Json, **spec: Any) -> Json:
    annotations = {"scheduling.k8s.io/group-name": gang}
    body = {"schedulerName": "volcano", "containers": [*containers], **spec}
    return make(plane, PODS, f"{gang}-{nth}", metadata={"annotations": annotations}, spec=body)


def test_pods_get_a_claim_that_is_made_for_them_and_told_of(plane: ControlPlane) -> None:
    init = {**_container("init", 2), "restartPolicy": None}
    _gang(plane, "g", 2, _container("main", 1), _container("more", 1), initContainers=[init])
    wait_until("the gang is bound", lambda: sorted(nodes(plane, "g", 2)) == ["node-0", "node-1"])
    for nth in (0, 1):
        pod = get(plane, PODS, f"g-{nth}")
        said = pod["status"]["extendedResourceClaimStatus"]
        assert said["resourceClaimName"] == extended_claim_name(f"g-{nth}", pod["metadata"]["uid"])
        assert [(one["containerName"], one["requestName"]) for one in said["requestMappings"]] == [
            ("main", "container-1-request-1"),
            ("more", "container-2-request-1"),
            ("init", "container-1-request-1"),
            ("init", "container-2-request-1"),
        ]
        claim = get(plane, RESOURCECLAIMS, said["resourceClaimName"])
        meta = claim["metadata"]
        assert (meta["annotations"][ANNOTATION], meta["finalizers"]) == ("true", [CLAIM_FINALIZER])
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], True)
        results = claim["status"]["allocation"]["devices"]["results"]
        assert [result["pool"] for result in results] == [pod["spec"]["nodeName"]] * 2
        assert sorted(result["device"] for result in results) == ["gpu-0", "gpu-1"]
        (user,) = claim["status"]["reservedFor"]
        assert (user["resource"], user["name"], user["uid"]) == ("pods", f"g-{nth}", pod["metadata"]["uid"])


def test_a_gang_waits_for_devices_and_gets_them_when_the_claims_of_others_are_gone(plane: ControlPlane) -> None:
    implicit = "deviceclass.resource.kubernetes.io/gpus"
    _gang(plane, "first", 3, _container("main", 1, implicit))
    wait_until("the gang is bound", lambda: all(nodes(plane, "first", 3)))
    _gang(plane, "next", 2, _container("main", 1))
    wait_until("why it waits is told", lambda: "resourceclaims" in str(get(plane, PODGROUPS, "next").get("status")))
    assert len(_claims(plane)) == 3
    plane.call("DELETE", f"{PODS.path(namespace=NAMESPACE, name='first-0')}?gracePeriodSeconds=0")
    wait_until("the next gang is bound", lambda: all(nodes(plane, "next", 2)))
    assert len({_device(plane, name) for name in ("first-1", "first-2", "next-0", "next-1")}) == 4


def test_a_claim_that_was_left_behind_is_deleted_and_its_pod_bound(plane: ControlPlane) -> None:
    gate = [{"name": "example.com/wait"}]
    pod = _pod(plane, "late", 0, _container("main", 2), schedulingGates=gate)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "late-0", "uid": pod["metadata"]["uid"], "controller": True}
    exactly = {"deviceClassName": "gpus", "count": 4}
    meta = {"annotations": {ANNOTATION: "true"}, "ownerReferences": [owner], "finalizers": [CLAIM_FINALIZER]}
    left = make(
        plane,
        RESOURCECLAIMS,
        "left",
        metadata=meta,
        spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    )
    wait_until("what was left behind is gone", lambda: left["metadata"]["name"] not in _names(plane))
    make(plane, PODGROUPS, "late", spec={"minMember": 1, "queue": "default"})
    path = PODS.path(namespace=NAMESPACE, name="late-0")
    plane.call("PATCH", path, {"spec": {"schedulingGates": []}}, content_type="application/merge-patch+json")
    wait_until("the pod is bound", lambda: all(nodes(plane, "late", 1)))
    assert len(_claims(plane)) == 1


def _names(plane: ControlPlane) -> list[str]:
    return [claim["metadata"]["name"] for claim in _claims(plane)]


def _device(plane: ControlPlane, pod: str) -> tuple[str, str]:
    name = get(plane, PODS, pod)["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    (result,) = get(plane, RESOURCECLAIMS, name)["status"]["allocation"]["devices"]["results"]
    return result["pool"], result["device"]
