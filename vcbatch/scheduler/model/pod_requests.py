"""The request of a pod: the requests of its containers, and the resources that they keep while the pod is being
resized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from vcbatch.api.pod import Container, ContainerStatus, Pod, PodStatus, ResourceRequirements
from vcbatch.scheduler.model.resources import CPU, MEMORY, PODS, Dimensions, Vector

NONZERO_CPU = 100.0
NONZERO_MEMORY = 200.0 * 1024 * 1024
"""The defaults for a container without requests in the least- and most-allocated scores (kube-scheduler's
`GetNonzeroRequests`)."""

_Amounts = Mapping[str, str | int | float]


def pod_request(pod: Pod, dims: Dimensions) -> tuple[Vector, Vector]:
    """The request of the pod ([R]), and the same for cpu and memory with defaults per container ([2]).

    The larger of the running containers' sum and the peak while init containers run, where init containers that restart
    (side-cars) keep their requests; pod-level requests replace the sum; overhead is added (Kubernetes
    `resource.PodRequests`). A container counts with the maximum of its request, the resources that the kubelet has
    reserved for it and those that it runs with; if the kubelet reported a resize as infeasible, its request doesn't
    count (KEP-1287; Kubernetes component-helpers, resource/helpers.go). One pod slot is always used.
    """
    spec = pod.spec
    held = _held(pod)
    for container in (*spec.containers, *(spec.init_containers or ())):
        if container.resources is not None:
            dims.learn(container.resources.requests or ())
            dims.learn(container.resources.limits or ())
    for status in held.values():
        for amounts in _reported(status):
            dims.learn(amounts)
    dims.learn(spec.overhead or ())
    requests = _sum_of(pod, dims, held, nonzero=False)
    nonzero = _sum_of(pod, dims, held, nonzero=True)
    if spec.resources is not None:
        whole = _of_pod(pod, dims)
        for name in {**(spec.resources.limits or {}), **(spec.resources.requests or {})}:
            column = dims.column(name)
            if column is not None:
                requests[column] = nonzero[column] = whole[column]
    overhead = dims.vector(spec.overhead)
    requests += overhead
    nonzero += overhead
    requests[PODS] = 1.0
    return dims.bounded(requests), dims.bounded(nonzero)[[CPU, MEMORY]]


def pod_limits(pod: Pod, dims: Dimensions) -> Vector:
    """The most cpu and memory that its containers may use together ([2]): their limits, else their requests."""
    total = np.zeros(2)
    for container in pod.spec.containers:
        resources = container.resources
        if resources is not None:
            total += dims.vector({**(resources.requests or {}), **(resources.limits or {})})[[CPU, MEMORY]]
    return total


def _of_pod(pod: Pod, dims: Dimensions) -> Vector:
    """The pod-level requests, by the same rule as those of a container."""
    status = pod.status
    views = [dims.vector(amounts) for amounts in _reported(status)]
    if not (views and pod.resize_infeasible):
        views.append(_asked(pod.spec.resources, dims))
    return np.maximum.reduce(views)


def held_text(pod: Pod) -> tuple[object, ...]:
    """A key that differs wherever the reported resources of containers could change the request of the same spec; empty
    for pods that aren't being resized."""
    held = _held(pod)
    if not held and pod.status.allocated_resources is None and pod.status.resources is None:
        return ()
    amounts = (
        (name, *(tuple(sorted(one.items())) for one in _reported(status)))
        for name, status in (("", pod.status), *sorted(held.items()))
    )
    return (pod.resize_infeasible, *amounts)


def _held(pod: Pod) -> dict[str, ContainerStatus]:
    """The containers, by name, for which the kubelet reports resources other than the spec's (see `Pod`)."""
    status = pod.status
    if status.container_statuses is None:
        return {}
    return {
        one.name: one
        for one in (*status.container_statuses, *(status.init_container_statuses or ()))
        if one.allocated_resources is not None or one.resources is not None
    }


def _reported(status: ContainerStatus | PodStatus) -> Iterator[_Amounts]:
    if status.allocated_resources is not None:
        yield status.allocated_resources
    if status.resources is not None and status.resources.requests is not None:
        yield status.resources.requests


def _sum_of(pod: Pod, dims: Dimensions, held: Mapping[str, ContainerStatus], *, nonzero: bool) -> Vector:
    infeasible = bool(held) and pod.resize_infeasible

    def takes(container: Container) -> Vector:
        status = held.get(container.name)
        reported = list(_reported(status)) if status is not None else []
        if not reported:
            return _asked(container.resources, dims, nonzero=nonzero)
        views = [_filled(amounts, dims, nonzero=nonzero) for amounts in reported]
        if not infeasible:
            views.append(_asked(container.resources, dims, nonzero=nonzero))
        return np.maximum.reduce(views)

    total = np.zeros(len(dims))
    for container in pod.spec.containers:
        total += takes(container)
    sidecars = np.zeros(len(dims))
    peak = np.zeros(len(dims))
    for container in pod.spec.init_containers or ():
        amount = takes(container)
        if container.restart_policy == "Always":
            sidecars += amount
            peak = np.maximum(peak, sidecars)
        else:
            peak = np.maximum(peak, sidecars + amount)
    return np.maximum(total + sidecars, peak)


def _asked(resources: ResourceRequirements | None, dims: Dimensions, *, nonzero: bool = False) -> Vector:
    """The requests; a limit without a request counts as one, as the API server defaults it."""
    requests = {} if resources is None else {**(resources.limits or {}), **(resources.requests or {})}
    return _filled(requests, dims, nonzero=nonzero)


def _filled(requests: _Amounts, dims: Dimensions, *, nonzero: bool) -> Vector:
    out = dims.vector(requests)
    if nonzero:
        if "cpu" not in requests:
            out[CPU] = NONZERO_CPU
        if "memory" not in requests:
            out[MEMORY] = NONZERO_MEMORY
    return out
