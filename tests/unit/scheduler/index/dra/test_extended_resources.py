"""Extended resources that nodes serve by devices (KEP-5004): who gets which, and why pods wait."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER, Claims, Json
from vcbatch.api.dra import DeviceClass
from vcbatch.api.names import extended_claim_name
from vcbatch.api.resources import DEVICECLASSES
from vcbatch.scheduler import CycleResult, WaitReason
from vcbatch.scheduler.model.result import ExtendedClaim

GPU = "example.com/gpu"


class Extended(Claims):
    """The class backs `example.com/gpu`. `more` has the nodes `c`, … besides `a` and `b`, with what they offer."""

    def __init__(self, resource: str | None = GPU, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.back(resource)

    def back(self, resource: str | None, *, event: str = "MODIFIED") -> None:
        selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
        raw = {"metadata": {"name": "gpu", "uid": "dc-gpu"}, "spec": {"selectors": selectors}}
        if resource is not None:
            raw["spec"] = {"selectors": selectors, "extendedResourceName": resource}
        self.scheduler.apply(DEVICECLASSES, event, msgspec.convert(raw, DeviceClass))

    def wants(self, gang: str, size: int, count: int, resource: str = GPU, **given: Any) -> None:
        requests = {"cpu": "1", resource: str(count)}
        containers = [{"name": "main", "resources": {"requests": requests}}]
        self.gang(gang, size, pod={"containers": containers}, **given)

    def made(self, pod: str) -> list[str]:
        """The devices of a pod's extended resources."""
        return self.got(extended_claim_name(pod, f"pod-{pod}"))


def _devices(result: CycleResult) -> dict[str, list[str]]:
    return {
        bind.name: [one["device"] for one in (given.allocation or {})["devices"]["results"]]
        for bind in result.binds
        for given in bind.devices
    }


def test_a_node_without_the_resource_serves_it_by_devices() -> None:
    cluster = Extended()
    cluster.devices("b", "gpu-0", "gpu-1", "gpu-2")
    cluster.wants("g", 1, 2)
    result = cluster.cycle()
    (bind,) = result.binds
    (device,) = bind.devices
    assert (bind.node, bind.gang) == ("b", "ns/g")
    request = "container-0-request-1"
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    assert device.extended == ExtendedClaim(
        [{"name": request, "exactly": exactly}],
        [{"containerName": "main", "resourceName": GPU, "requestName": request}],
    )
    assert (device.namespace, device.name, device.uid) == (
        "ns", extended_claim_name("g-worker-0", "pod-g-worker-0"), "",
    )  # fmt: skip
    only = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    assert device.allocation == {
        "devices": {
            "results": [
                {"request": request, "driver": DRIVER, "pool": "b", "device": name} for name in ("gpu-0", "gpu-1")
            ]
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
    }


def test_every_class_serves_the_name_that_is_made_of_its_own() -> None:
    cluster = Extended(None)
    cluster.devices("a", "gpu-0")
    cluster.wants("g", 1, 1, "deviceclass.resource.kubernetes.io/gpu")
    cluster.wants("other", 1, 1)
    assert _devices(cluster.cycle()) == {"g-worker-0": ["gpu-0"]}


def test_devices_are_given_to_one_pod_each_within_a_cycle_and_after_it() -> None:
    cluster = Extended()
    cluster.devices("a", "gpu-0", "gpu-1")
    cluster.devices("b", "gpu-0")
    cluster.wants("g", 3, 1)
    cluster.wants("late", 1, 1)
    result = cluster.cycle()
    assert sorted(bind.node for bind in result.binds) == ["a", "a", "b"]
    given = {(bind.node, *_devices(result)[bind.name]) for bind in result.binds}
    assert given == {("a", "gpu-0"), ("a", "gpu-1"), ("b", "gpu-0")}
    reported = cluster.scheduler.explain("ns", "late")
    assert reported is not None
    assert (reported.reason, reported.shortages[0].resource) == (WaitReason.INSUFFICIENT, GPU)
    assert not cluster.cycle().binds
    cluster.run("g")
    assert not cluster.cycle().binds
    pod = next(name for name, raw in cluster.pods.items() if raw["spec"].get("nodeName") == "b")
    cluster.delete(pod)
    assert not cluster.cycle().binds, "its claim is there still"
    cluster.drop(extended_claim_name(pod, f"pod-{pod}"))
    assert _devices(cluster.cycle()) == {"late-worker-0": ["gpu-0"]}


def test_a_gang_gets_all_of_its_devices_or_none() -> None:
    cluster = Extended()
    cluster.devices("a", "gpu-0", "gpu-1", "gpu-2")
    cluster.wants("large", 4, 1)
    cluster.wants("fits", 1, 3)
    result = cluster.cycle()
    assert _devices(result) == {"fits-worker-0": ["gpu-0", "gpu-1", "gpu-2"]}


def test_claims_and_extended_resources_share_the_devices() -> None:
    cluster = Extended()
    cluster.devices("a", "gpu-0", "gpu-1")
    cluster.claim("c")
    cluster.users("first", 1, "c")
    cluster.wants("two", 1, 2)
    cluster.wants("one", 1, 1)
    result = cluster.cycle()
    assert _devices(result) == {"first-worker-0": ["gpu-0"], "one-worker-0": ["gpu-1"]}
    assert "couldn't serve all resourceclaims" in cluster.why("two")


def test_a_pod_with_a_claim_of_its_own_gets_both() -> None:
    cluster = Extended()
    cluster.devices("a", "gpu-0")
    cluster.devices("b", "gpu-0", "gpu-1")
    cluster.claim("c")
    cluster.wants("g", 0, 1, minimum=1)
    containers = [{"name": "main", "resources": {"requests": {GPU: "1"}}}]
    cluster.pod("g", 0, containers=containers, resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    result = cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b"}
    assert [device.extended is None for device in result.binds[0].devices] == [True, False]
    assert (cluster.got("c"), cluster.made("g-worker-0")) == (["gpu-0"], ["gpu-1"])


def test_a_node_that_offers_the_resource_serves_it_as_ever() -> None:
    cluster = Extended()
    cluster.node("b", event="MODIFIED", **{GPU: "2"})
    cluster.devices("b", "gpu-0")
    cluster.wants("g", 2, 1)
    result = cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b", "g-worker-1": "b"}
    assert [bind.devices for bind in result.binds] == [(), ()]


def test_nodes_of_both_kinds_serve_one_gang() -> None:
    cluster = Extended()
    cluster.node("a", event="MODIFIED", **{GPU: "1"})
    cluster.devices("b", "gpu-0")
    cluster.wants("g", 2, 1)
    result = cluster.cycle()
    assert {bind.node: len(bind.devices) for bind in result.binds} == {"a": 0, "b": 1}


@pytest.mark.parametrize("offered", [None, "0"])
def test_what_no_node_has_as_many_of_can_not_be_had(offered: str | None) -> None:
    cluster = Extended()
    if offered is not None:
        cluster.node("a", event="MODIFIED", **{GPU: offered})
    cluster.devices("a", "gpu-0", "gpu-1")
    cluster.wants("g", 1, 3)
    cluster.cycle()
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason is WaitReason.IMPOSSIBLE
    assert reported.shortages[0][:3] == (GPU, "3", "2")
    cluster.devices("a", "gpu-0", "gpu-1", "gpu-2", event="MODIFIED")
    assert len(cluster.cycle().binds) == 1


def test_a_class_that_backs_nothing_any_more_serves_nothing() -> None:
    cluster = Extended()
    cluster.devices("a", "gpu-0")
    cluster.back(None)
    cluster.wants("g", 1, 1)
    assert not cluster.cycle().binds
    cluster.back(GPU)
    assert len(cluster.cycle().binds) == 1


def test_a_policy_without_devices_by_claim_serves_nothing() -> None:
    cluster = Extended(GPU, **{"predicate.DynamicResourceAllocationEnable": False})
    cluster.devices("a", "gpu-0")
    cluster.wants("g", 1, 1)
    assert not cluster.cycle().binds


def test_a_pod_waits_until_the_claim_of_an_earlier_attempt_is_gone() -> None:
    cluster = Extended()
    cluster.devices("a", "gpu-0")
    cluster.wants("g", 1, 1)
    notes = {"resource.kubernetes.io/extended-resource-claim": "true"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "g-worker-0", "uid": "pod-g-worker-0", "controller": True}
    meta = {"name": "old", "namespace": "ns", "uid": "rc-old", "annotations": notes, "ownerReferences": [owner]}
    cluster._store({"metadata": meta, "spec": {}, "status": {}}, "ADDED")
    assert not cluster.cycle().binds
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason is WaitReason.DEVICES
    assert 'resourceclaim "old" of an earlier attempt to place it is still there' in reported.message
    cluster.drop("old")
    assert len(cluster.cycle().binds) == 1


@pytest.mark.parametrize("named", [False, True])
def test_devices_that_were_never_written_down_are_free_once_their_pod_is_gone(named: bool) -> None:
    cluster = Extended()
    cluster.devices("a", "gpu-0")
    if named:
        cluster.claim("c")
        cluster.users("g", 1, "c")
    else:
        cluster.wants("g", 1, 1)
    assert len(super(Claims, cluster).cycle().binds) == 1
    cluster.wants("next", 1, 1)
    cluster.delete_gang("g")
    assert _devices(cluster.cycle()) == {"next-worker-0": ["gpu-0"]}


def test_devices_that_are_shared_count_by_what_a_share_takes() -> None:
    cluster = Extended()
    policy = {"default": "4Gi", "validRange": {"min": "1Gi"}}
    raw: Json = {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "10Gi", "requestPolicy": policy}},
    }
    cluster.devices("a", "gpu-0", devices=[raw])
    cluster.wants("g", 2, 1)
    cluster.wants("late", 1, 1)
    assert _devices(cluster.cycle()) == {"g-worker-0": ["gpu-0"], "g-worker-1": ["gpu-0"]}
    reported = cluster.scheduler.explain("ns", "late")
    assert reported is not None
    assert reported.shortages[0].resource == GPU


def test_however_it_is_told_the_picture_is_the_same() -> None:
    moved = Extended(None)
    moved.node("a", event="MODIFIED", **{GPU: "3"})
    moved.wants("g", 1, 1, minimum=2)
    moved.devices("a", "gpu-0")
    moved.cycle()
    moved.node("a", event="MODIFIED")
    moved.devices("b", "gpu-0", "gpu-1")
    moved.cycle()
    moved.back(GPU)
    moved.devices("a", "gpu-0", "gpu-1", "gpu-2", event="MODIFIED")
    moved.cycle()
    anew = Extended()
    anew.devices("a", "gpu-0", "gpu-1", "gpu-2")
    anew.devices("b", "gpu-0", "gpu-1")
    anew.wants("g", 1, 1, minimum=2)
    anew.cycle()
    tables = [one.scheduler._state for one in (moved, anew)]
    column = [state.dims.column(GPU) for state in tables]
    assert column[0] == column[1] is not None
    assert tables[0].nodes.alloc[column[0]].tolist() == [3000.0, 2000.0]
    assert np.array_equal(tables[0].nodes.alloc, tables[1].nodes.alloc)


@pytest.mark.parametrize("named", [False, True])
def test_who_goes_on_for_another_gives_no_device_away_twice(named: bool) -> None:
    def world() -> Extended:
        cluster = Extended()
        cluster.devices("a", "gpu-0", "gpu-1")
        if named:
            cluster.claim("c")
            cluster.users("g", 1, "c")
        else:
            cluster.wants("g", 1, 1)
        return cluster

    first, second = world(), world()
    assert len(first.scheduler.cycle(first.now).binds) == 1
    second.scheduler.resume(first.scheduler.assumed(), cycles=1)
    second.wants("next", 2, 1, minimum=1)
    result = second.scheduler.cycle(second.now)
    assert _devices(result) == {"next-worker-0": ["gpu-1"]}
