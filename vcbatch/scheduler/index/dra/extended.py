"""Extended resources backed by device classes: the requests of claims for them. Source: KEP-5004 (DRAExtendedResource).

A pod's request for such a resource is served by devices on nodes that don't report the resource themselves.
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
    """The devices of this request of the claim serve the container's request for the resource."""

    container: str
    resource: str
    request: str

    def wire(self) -> Mapping[str, str]:
        """The entry in the form of the pod's status."""
        return {"containerName": self.container, "resourceName": self.resource, "requestName": self.request}


class Wanted(NamedTuple):
    """The requests of a pod's claim, and the containers that they are for."""

    requests: Sequence[ClaimRequest]
    mapped: Sequence[Mapped]


class _Part(NamedTuple):
    """The request of one container beyond the devices of others that it may use; None if it needs no more."""

    request: ClaimRequest | None
    mapped: list[Mapped]


def backing(classes: Iterable[DeviceClass]) -> Mapping[str, str]:
    """The device class of each extended resource that is backed by one. Among several with the same resource the newest
    counts, then the first by name; every class also backs its own implicit name."""
    found: dict[str, str] = {}
    known = sorted(classes, key=lambda made: made.metadata.name)
    for made in sorted(known, key=lambda made: made.metadata.creation_timestamp or "", reverse=True):
        name = made.spec.extended_resource_name or ""
        if "/" in name and _NATIVE not in name:
            found.setdefault(name, made.metadata.name)
    return {**found, **{names.DEVICE_CLASS_RESOURCE + made.metadata.name: made.metadata.name for made in known}}


def wanted_of(spec: PodSpec, resources: Collection[str], classes: Mapping[str, str]) -> Wanted:
    """The requests of the pod's claim for these resources, each of which has a class. Init containers that end use the
    devices of later containers first; what they need beyond these is requested once, for the one that needs most."""
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
    """The requests of such a claim in the form of the API."""
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
    """`others` are requests whose devices the container may use. The name of the request has the index of the
    container, init containers first, and of the resource among all requests of the container."""
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
    """The requests; a limit without a request counts as one, as the API server defaults it."""
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
