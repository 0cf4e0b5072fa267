"""Extended resources that device classes back: what a claim for them asks for. Source: KEP-5004 (DRAExtendedResource).

A pod's request for such a resource is served by devices on nodes that have none of it to offer themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vcbatch.api import names
from vcbatch.api.dra import ClaimRequest, DeviceClass, DeviceRequest, ResourceClaim
from vcbatch.api.pod import Container, PodSpec
from vcbatch.api.quantity import MalformedQuantity, parse_quantity

_NATIVE = "kubernetes.io/"


class Mapped(NamedTuple):
    """The devices of this request of the claim are what the container asked for by the name of the resource."""

    container: str
    resource: str
    request: str

    def wire(self) -> Mapping[str, str]:
        """As the status of the pod has it."""
        return {"containerName": self.container, "resourceName": self.resource, "requestName": self.request}


class Wanted(NamedTuple):
    """What the claim of a pod asks for, and for which containers."""

    requests: Sequence[ClaimRequest]
    mapped: Sequence[Mapped]


class _Part(NamedTuple):
    """What one container asks for besides what it may use of others; None for nothing more."""

    request: ClaimRequest | None
    mapped: list[Mapped]


def backing(classes: Iterable[DeviceClass]) -> Mapping[str, str]:
    """The device class of each extended resource that one backs. Of several that name the same the newest counts, of
    these the one whose name comes first; every class backs its own implicit name besides."""
    found: dict[str, str] = {}
    known = sorted(classes, key=lambda made: made.metadata.name)
    for made in sorted(known, key=lambda made: made.metadata.creation_timestamp or "", reverse=True):
        name = made.spec.extended_resource_name or ""
        if "/" in name and _NATIVE not in name:
            found.setdefault(name, made.metadata.name)
    return {**found, **{names.DEVICE_CLASS_RESOURCE + made.metadata.name: made.metadata.name for made in known}}


def wanted_of(spec: PodSpec, resources: Collection[str], classes: Mapping[str, str]) -> Wanted:
    """What the pod's claim asks for of these resources, each of which has a class. Init containers that end use the
    devices of the containers after them first; what they need beyond these is asked for once, for the one that needs
    most."""
    inits = spec.init_containers or []
    containers = [*inits, *spec.containers]
    ends = [at < len(inits) and one.restart_policy != "Always" for at, one in enumerate(containers)]
    requests: list[ClaimRequest] = []
    mapped: list[Mapped] = []
    for resource in sorted(resources):
        lasting: list[ClaimRequest | None] = [None] * len(containers)
        for at, container in enumerate(containers):
            if not ends[at]:
                part = _part(at, container, resource, classes[resource], ())
                lasting[at] = part.request
                mapped += part.mapped
        parts = [
            _part(at, container, resource, classes[resource], [one for one in lasting[at:] if one is not None])
            for at, container in enumerate(containers)
            if ends[at]
        ]
        extra = [part.request for part in parts if part.request is not None]
        most = max(extra, key=_count, default=None)
        own = {request.name for request in extra}
        for part in parts:
            for use in part.mapped:
                mapped.append(use._replace(request=most.name) if most is not None and use.request in own else use)
        requests += [request for request in (most, *lasting) if request is not None]
    return Wanted(sorted(requests, key=lambda request: request.name), mapped)


def requests_of(claim: ResourceClaim) -> Sequence[Mapping[str, Any]]:
    """The requests of such a claim as the API has them."""
    return [
        {
            "name": request.name,
            "exactly": {
                "deviceClassName": request.exactly.device_class_name,
                "allocationMode": request.exactly.allocation_mode,
                "count": request.exactly.count,
            },
        }
        for request in claim.spec.devices.requests or ()
        if request.exactly is not None
    ]


def _part(at: int, container: Container, resource: str, device_class: str, others: Sequence[ClaimRequest]) -> _Part:
    """`others` are requests whose devices the container may use. The request is numbered by the container, init
    containers first, and by the resource among all that the container asks for."""
    asked = _asked(container)
    left = _whole(asked.get(resource, 0))
    mapped: list[Mapped] = []
    for other in others:
        if left <= 0:
            break
        mapped.append(Mapped(container.name, resource, other.name))
        left -= _count(other)
    if left <= 0:
        return _Part(None, mapped)
    name = f"container-{at}-request-{sorted(asked).index(resource)}"
    exactly = DeviceRequest(device_class_name=device_class, allocation_mode="ExactCount", count=left)
    return _Part(ClaimRequest(name=name, exactly=exactly), [*mapped, Mapped(container.name, resource, name)])


def _asked(container: Container) -> Mapping[str, str | int | float]:
    """A limit without a request is a request, as the API server defaults it."""
    resources = container.resources
    return {} if resources is None else {**(resources.limits or {}), **(resources.requests or {})}


def _whole(quantity: str | float) -> int:
    try:
        exact = parse_quantity(quantity)
    except MalformedQuantity:
        return 0
    return exact.value()


def _count(request: ClaimRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0
