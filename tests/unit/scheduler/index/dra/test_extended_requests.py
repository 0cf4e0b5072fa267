"""What a claim for a pod's extended resources asks for (KEP-5004)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from vcbatch.api.dra import DeviceClass, ResourceClaim, ResourceClaimSpec
from vcbatch.api.names import extended_claim_name
from vcbatch.api.pod import PodSpec
from vcbatch.scheduler.index.dra.extended import backing, requests_of, wanted_of

Json = dict[str, Any]
GPU, NIC = "example.com/gpu", "example.com/nic"


def _container(name: str, *, always: bool = False, **amounts: Any) -> Json:
    requests = {key.replace("_", "/", 1) if "_" in key else key: amount for key, amount in amounts.items()}
    requests = {f"example.com/{key}" if key in ("gpu", "nic") else key: amount for key, amount in requests.items()}
    restart = {"restartPolicy": "Always"} if always else {}
    return {"name": name, "resources": {"requests": requests}, **restart}


def _asked(inits: list[Json], *containers: Json, resources: tuple[str, ...] = (GPU,)) -> tuple[list[Any], list[Any]]:
    spec = msgspec.convert({"initContainers": inits, "containers": list(containers)}, PodSpec)
    wanted = wanted_of(spec, resources, {GPU: "gpus", NIC: "nics"})
    asked = [(r.name, r.exactly.device_class_name, r.exactly.count) for r in wanted.requests if r.exactly is not None]
    return asked, [(use.container, use.resource.partition("/")[2], use.request) for use in wanted.mapped]


def test_every_container_has_its_own_request_numbered_by_its_place_and_that_of_the_resource() -> None:
    asked, mapped = _asked(
        [], _container("a", cpu=1, gpu=2, nic="1"), _container("b"), _container("c", gpu=1), resources=(NIC, GPU)
    )
    assert asked == [
        ("container-0-request-1", "gpus", 2),
        ("container-0-request-2", "nics", 1),
        ("container-2-request-0", "gpus", 1),
    ]
    assert mapped == [
        ("a", "gpu", "container-0-request-1"),
        ("c", "gpu", "container-2-request-0"),
        ("a", "nic", "container-0-request-2"),
    ]


def test_init_containers_that_end_use_the_devices_of_those_after_them() -> None:
    asked, mapped = _asked([_container("init", gpu=2)], _container("a", gpu=1), _container("b", gpu=3))
    assert asked == [("container-1-request-0", "gpus", 1), ("container-2-request-0", "gpus", 3)]
    assert mapped == [
        ("a", "gpu", "container-1-request-0"),
        ("b", "gpu", "container-2-request-0"),
        ("init", "gpu", "container-1-request-0"),
        ("init", "gpu", "container-2-request-0"),
    ]


def test_what_init_containers_need_beyond_that_is_asked_for_once() -> None:
    inits = [_container("small", gpu=2), _container("large", gpu=4), _container("equal", gpu=4)]
    asked, mapped = _asked(inits, _container("main", gpu=1))
    assert asked == [("container-1-request-0", "gpus", 3), ("container-3-request-0", "gpus", 1)]
    assert mapped == [
        ("main", "gpu", "container-3-request-0"),
        *((name, "gpu", request) for name in ("small", "large", "equal") for request in (
            "container-3-request-0", "container-1-request-0"
        )),
    ]  # fmt: skip


def test_the_devices_of_a_sidecar_are_for_those_before_it() -> None:
    inits = [_container("first", gpu=1), _container("side", always=True, gpu=1), _container("second", gpu=1)]
    asked, mapped = _asked(inits, _container("main"))
    assert asked == [("container-1-request-0", "gpus", 1), ("container-2-request-0", "gpus", 1)]
    assert mapped == [
        ("side", "gpu", "container-1-request-0"),
        ("first", "gpu", "container-1-request-0"),
        ("second", "gpu", "container-2-request-0"),
    ]


@pytest.mark.parametrize("amount", [0, "0"])
def test_nothing_is_asked_for_nothing(amount: Any) -> None:
    assert _asked([_container("init", gpu=amount)], _container("a", gpu=amount)) == ([], [])


def test_a_limit_is_a_request() -> None:
    assert _asked([], {"name": "a", "resources": {"limits": {GPU: "1", "cpu": "2"}}})[0] == [
        ("container-0-request-1", "gpus", 1)
    ]


def test_the_newest_class_backs_a_name_and_every_class_its_own() -> None:
    def made(name: str, resource: str | None, created: str) -> DeviceClass:
        spec = {"extendedResourceName": resource}
        return msgspec.convert({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}, DeviceClass)

    first, second = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    classes = [made("b", GPU, second), made("old", GPU, first), made("c", GPU, second), made("odd", "cpu", second)]
    assert backing(classes) == {
        GPU: "b",
        **{f"deviceclass.resource.kubernetes.io/{name}": name for name in ("b", "c", "odd", "old")},
    }


def test_requests_are_told_as_the_api_has_them() -> None:
    spec = msgspec.convert({"containers": [_container("a", gpu=2)]}, PodSpec)
    devices = {"requests": msgspec.to_builtins(wanted_of(spec, [GPU], {GPU: "gpus"}).requests)}
    claim = ResourceClaim(spec=msgspec.convert({"devices": devices}, ResourceClaimSpec))
    exactly = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2}
    assert requests_of(claim) == [{"name": "container-0-request-0", "exactly": exactly}]


def test_the_claim_is_named_after_its_pod_and_no_longer_than_a_label() -> None:
    name = extended_claim_name("p", "uid-1")
    assert (name[:-5], len(name)) == ("p-extended-resources-", 26)
    assert name == extended_claim_name("p", "uid-1") != extended_claim_name("p", "uid-2")
    assert len(extended_claim_name("p" * 253, "uid-1")) == 63
