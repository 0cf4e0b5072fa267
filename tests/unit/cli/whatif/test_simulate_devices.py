"""`vcbatch simulate` with claims for devices: partitions, shares, and gangs that get all or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.whatif.test_simulate import Json, group, node, pod, reported, run

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"


def _device_class(**spec: str) -> Json:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    spec_ = {"selectors": [selector], **spec}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec_}


def _slice(name: str, host: str, count: int, **spec: Any) -> Json:
    pool = {"name": host, "generation": 1, "resourceSliceCount": count}
    body = {"driver": DRIVER, "nodeName": host, "pool": pool, **spec}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": body}


def _uses(set_name: str, amount: int) -> Json:
    return {"counterSet": set_name, "counters": {"slices": {"value": str(amount)}}}


def _partitioned(host: str, slices: int) -> list[Json]:
    shared = {"name": "s", "counters": {"slices": {"value": str(slices)}}}
    devices = [
        {"name": f"part-{nth}", "consumesCounters": [_uses("s", amount)]} for nth, amount in enumerate((4, 4, 8))
    ]
    return [
        _slice(f"{host}-counters", host, 2, sharedCounters=[shared]),
        _slice(f"{host}-devices", host, 2, devices=devices),
    ]


def _claim(name: str, **request: Any) -> Json:
    wanted = {"name": "r", "exactly": {"deviceClassName": "gpu", **request}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [wanted]}},
    }


def _gang(name: str, pods: int, **request: Any) -> list[Json]:
    """Each of the pods with new claim."""
    members = [f"{name}-{nth}" for nth in range(pods)]
    claims = [_claim(member, **request) for member in members]
    entries = [[{"name": "device", "resourceClaimName": member}] for member in members]
    made = [pod(member, name, gpus=0, resourceClaims=entry) for member, entry in zip(members, entries, strict=True)]
    return [group(name, pods), *claims, *made]


def _world(path: Path, *objects: Json) -> str:
    pytest.importorskip("cel")
    file = path / "world.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def test_gangs_get_parts_of_gpus_as_far_as_counters_go_and_all_or_nothing(tmp_path: Path) -> None:
    world = _world(
        tmp_path,
        *[node("a"), node("b"), _device_class()],
        *_partitioned("a", 8),
        *_partitioned("b", 4),
        *_gang("first", 3),
        *_gang("second", 2),
    )
    [found] = reported(run(world, "--rounds", "3", "-o", "json"))
    assert sorted(found["binds"].values()) == ["a", "a", "b"]
    assert {name.partition("/")[2].partition("-")[0] for name in found["binds"]} == {"first"}
    assert "node(s) couldn't serve all resourceclaims" in str(found["reasons"]["default/second"])


def test_claims_share_devices_by_capacity(tmp_path: Path) -> None:
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
    ask = {"capacity": {"requests": {"memory": "4Gi"}}}
    world = _world(
        tmp_path,
        *[node("a"), node("b"), _device_class(), _slice("b", "b", 1, devices=[shared])],
        *_gang("first", 2, **ask),
        *_gang("second", 1, **ask),
        *_gang("third", 1, capacity={"requests": {"memory": "2Gi"}}),
    )
    [found] = reported(run(world, "--rounds", "3", "-o", "json"))
    assert found["binds"] == {f"default/{name}": "b" for name in ("first-0", "first-1", "third-0")}
    assert set(found["reasons"]) == {"default/second"}


def test_devices_serve_what_pods_ask_for_as_an_extended_resource(tmp_path: Path) -> None:
    fabric = "example.com/fabric"
    container = {"name": "c", "resources": {"requests": {"cpu": "1", fabric: "1"}}}
    world = _world(
        tmp_path,
        *[node("a"), node("b"), _device_class(extendedResourceName=fabric)],
        _slice("b", "b", 1, devices=[{"name": "one"}, {"name": "two"}]),
        *[group("first", 2), *[pod(f"first-{nth}", "first", containers=[container]) for nth in range(2)]],
        *[group("second", 1), pod("second-0", "second", containers=[container])],
        *[group("third", 3), *[pod(f"third-{nth}", "third", containers=[container]) for nth in range(3)]],
    )
    [found] = reported(run(world, "--rounds", "3", "-o", "json"))
    assert found["binds"] == {"default/first-0": "b", "default/first-1": "b"}
    second, third = (found["reasons"][f"default/{name}"] for name in ("second", "third"))
    assert (second["reason"], third["reason"]) == ("InsufficientResources", "Impossible")
    assert second["shortages"] == [{"resource": fabric, "requested": "1", "available": "0", "shortBy": "1"}]
